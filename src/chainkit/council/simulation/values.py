"""Bytes of a storage slot in words, by the type that the compiler gives them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eth_utils.address import to_checksum_address

from chainkit.contracts.interface import render
from chainkit.contracts.storage_layout import StoredType
from chainkit.council.simulation.keys import CandidateKeys
from chainkit.types import ADDRESS_LENGTH

NONE: Final = "(none)"
"""The zero address, and a text of no bytes."""

ZERO: Final = "(zero)"
"""Bytes of fixed length that are all zero, as in a list behind its end."""

LONGEST_TEXT: Final = 4096
"""Bytes of a text that is still decoded: eight times what the registry takes."""

_WORD: Final = 32
_SIGNED: Final = re.compile(r"int\d+")
_UNSIGNED: Final = re.compile(r"uint\d+|enum .*")
_BYTES: Final = re.compile(r"bytes\d+")


def render_value(type_: StoredType, value: bytes, keys: CandidateKeys) -> str | None:
    """Write a value of a type that fits one slot; None where the type has no such value.

    A bytes32 that is the address of one of ``keys`` is written as an address: sets of addresses
    store addresses in this form.
    """
    label, number = type_.label, int.from_bytes(value, "big")
    if label == "bool":
        return render(bool(number)) if number < 2 else None
    if _UNSIGNED.fullmatch(label):
        return str(number)
    if _SIGNED.fullmatch(label):
        return str(int.from_bytes(value, "big", signed=True))
    if label.startswith(("address", "contract ")):
        return to_checksum_address(value) if number else NONE
    if _BYTES.fullmatch(label):
        if not number:
            return ZERO
        address = value[-ADDRESS_LENGTH:]
        is_address = value == address.rjust(_WORD, b"\0") and address in keys.addresses
        return to_checksum_address(address) if is_address else render(value)
    return None


@dataclass(frozen=True, slots=True)
class Text:
    """A string or bytes of any length, as it lies in storage."""

    words: str
    """Characters in quotes for a string, else hex; safe to print."""
    slots: int
    """How many slots the text has besides its first."""


def read_text(
    type_: StoredType, read_word: Callable[[int], int], head: int, start: int
) -> Text | None:
    """Return the text at the slot ``head``, which continues from the slot ``start``.

    Up to 31 bytes are in ``head``, followed by twice their number; of a longer text, ``head`` has
    only twice the number plus 1. None where the slots hold no text, or more than LONGEST_TEXT
    bytes.
    """
    word = read_word(head)
    size = (word if word % 2 else word & 0xFF) // 2
    if (size >= _WORD) != bool(word % 2) or size > LONGEST_TEXT:
        return None
    slots = -(-size // _WORD) if size >= _WORD else 0
    parts = [read_word(start + index) for index in range(slots)] if slots else [word & ~0xFF]
    whole = b"".join(part.to_bytes(_WORD, "big") for part in parts)
    content, rest = whole[:size], whole[size:]
    if any(rest):
        # Solidity leaves zeros behind a text: here something would not be shown.
        return None
    if not content:
        return Text(NONE, 0)
    is_string = type_.label == "string"
    shown = content.decode(errors="surrogateescape") if is_string else content
    return Text(render(shown), slots)
