"""Identifiers of an inbox's members, and the inbox id that derives from the first of them."""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from chainkit.errors import MalformedData
from chainkit.types import ADDRESS_LENGTH

INSTALLATION_KEY_LENGTH: Final = 32
"""Bytes of an Ed25519 public key."""
PASSKEY_LENGTHS: Final = {b"\x02": 33, b"\x03": 33, b"\x04": 65}
"""Bytes of a P-256 public key in SEC 1's form, by the key's first byte."""

_ADDRESS: Final = re.compile(r"0x[0-9a-f]{40}")
_PASSKEY: Final = re.compile(r"(?:[0-9a-f]{66}|[0-9a-f]{130})")
_INBOX_ID: Final = re.compile(r"[0-9a-f]{64}")


class MemberKind(StrEnum):
    """Kinds of keys that belong to an inbox: its role, which never changes (XIP-46)."""

    ETHEREUM = "wallet"
    INSTALLATION = "installation"
    PASSKEY = "passkey"


class MemberIdentifier(NamedTuple):
    """A key that may belong to an inbox. Equal bytes of two kinds are two identifiers."""

    kind: MemberKind
    value: bytes
    """An address of 20 bytes, an Ed25519 key of 32, or a P-256 key of 33 or 65 (SEC 1)."""

    def __str__(self) -> str:
        """Return the identifier as in signature texts: lower-case hex, an address with 0x."""
        return f"0x{self.value.hex()}" if self.kind is MemberKind.ETHEREUM else self.value.hex()


def wallet(address: str) -> MemberIdentifier:
    """Return the identifier of an address. Raises MalformedData unless it is in lower case.

    An update's text shows the identifier as it was written, and the address that is recovered from
    a signature is in lower case: another form would never equal it.
    """
    if not _ADDRESS.fullmatch(address):
        raise MalformedData("address", "0x and 40 lower-case hexadecimal digits", "another form")
    return MemberIdentifier(MemberKind.ETHEREUM, bytes.fromhex(address[2:]))


def wallet_of(address: bytes) -> MemberIdentifier:
    """Return the identifier of an address. Raises MalformedData unless it has 20 bytes."""
    _check_length("address", address, ADDRESS_LENGTH)
    return MemberIdentifier(MemberKind.ETHEREUM, address)


def installation(key: bytes) -> MemberIdentifier:
    """Return the identifier of an Ed25519 key. Raises MalformedData unless it has 32 bytes."""
    _check_length("installation key", key, INSTALLATION_KEY_LENGTH)
    return MemberIdentifier(MemberKind.INSTALLATION, key)


def passkey(key: bytes) -> MemberIdentifier:
    """Return the identifier of a P-256 key. Raises MalformedData unless it is in SEC 1's form.

    Whether the key is a point of the curve is checked with its first signature.
    """
    if PASSKEY_LENGTHS.get(key[:1]) != len(key):
        raise MalformedData("passkey", "a P-256 key in SEC 1's form", f"{len(key)} bytes")
    return MemberIdentifier(MemberKind.PASSKEY, key)


def passkey_from_hex(text: str) -> MemberIdentifier:
    """Return the identifier of a passkey as an update writes it. Raises MalformedData."""
    if not _PASSKEY.fullmatch(text):
        raise MalformedData("passkey", "66 or 130 lower-case hexadecimal digits", "another form")
    return passkey(bytes.fromhex(text))


def parse_identifier(text: str, kind: MemberKind) -> MemberIdentifier | None:
    """Return the wallet or passkey that somebody asks for, in any case; None for other text."""
    reader = _READERS.get(kind)
    try:
        return reader(text.lower()) if reader else None
    except MalformedData:
        return None


_READERS: Final = {MemberKind.ETHEREUM: wallet, MemberKind.PASSKEY: passkey_from_hex}


def parse_inbox_id(text: str) -> bytes:
    """Return the 32 bytes of an inbox id. Raises MalformedData for another form."""
    if not _INBOX_ID.fullmatch(text):
        raise MalformedData("inbox id", "64 lower-case hexadecimal digits", "another form")
    return bytes.fromhex(text)


def derive_inbox_id(initial: MemberIdentifier, nonce: int) -> bytes:
    """Return the 32-byte id of the inbox that a wallet or passkey creates with a nonce (a uint64).

    The id is the SHA-256 of identifier and nonce as text, concatenated (XIP-46, CreateInbox).
    """
    return sha256(f"{initial}{nonce}".encode("ascii")).digest()


def _check_length(subject: str, value: bytes, length: int) -> None:
    if len(value) != length:
        raise MalformedData(subject, f"{length} bytes", f"{len(value)} bytes")
