"""Accounts that let a contract act for them (EIP-7702)."""

from __future__ import annotations

from typing import Final

from chainkit.types import ADDRESS_LENGTH

_PREFIX: Final = bytes.fromhex("ef0100")


def delegate_of(code: bytes) -> bytes | None:
    """Return the contract that acts for an account with this code, None where none does."""
    delegate = code.removeprefix(_PREFIX)
    return delegate if code.startswith(_PREFIX) and len(delegate) == ADDRESS_LENGTH else None
