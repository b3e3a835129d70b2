"""The plaintext of an application message, version 1.

::

    version   1 byte    1
    time      8 bytes   the sender's clock, nanoseconds since 1970
    epoch     8 bytes   the epoch that the sender was in
    count     1 byte    1 to 4
    history   32 bytes each: the sender's epoch authenticators of this epoch and those before it
    content   the rest

The time is in here so that all devices derive the same message id (R11). The history shows a fork:
members whose authenticator of an epoch differs have accepted different commits (R4).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from chainkit.errors import MalformedData

VERSION: Final = 1
MOST_HISTORY: Final = 4
"""Authenticators in one message: the current epoch and those whose messages can be read yet."""
AUTHENTICATOR_LENGTH: Final = 32
_INTEGER: Final = 8
_HEAD: Final = 2 + 2 * _INTEGER
_SUBJECT: Final = "plaintext"


@dataclass(frozen=True, slots=True)
class Plaintext:
    """An application message, decrypted and taken apart."""

    sent_at_ns: int
    """The sender's clock in nanoseconds since 1970."""
    epoch: int
    """The epoch that the sender was in."""
    history: tuple[bytes, ...]
    """1 to 4 authenticators of 32 bytes, of ``epoch`` and of those before it, downwards."""
    content: bytes = field(repr=False)

    def encoded(self) -> bytes:
        """Return the bytes that are encrypted. Raises MalformedData for another history."""
        _check(self.history)
        head = bytes([VERSION]) + self.sent_at_ns.to_bytes(_INTEGER, "big")
        head += self.epoch.to_bytes(_INTEGER, "big") + bytes([len(self.history)])
        return head + b"".join(self.history) + self.content


def parse_plaintext(data: bytes) -> Plaintext:
    """Take the plaintext of an application message apart. Raises MalformedData."""
    if len(data) < _HEAD or data[0] != VERSION:
        raise MalformedData(_SUBJECT, f"version {VERSION}", f"0x{data[:1].hex()}")
    sent_at_ns = int.from_bytes(data[1 : 1 + _INTEGER], "big")
    epoch = int.from_bytes(data[1 + _INTEGER : _HEAD - 1], "big")
    end = _HEAD + data[_HEAD - 1] * AUTHENTICATOR_LENGTH
    if len(data) < end:
        raise MalformedData(_SUBJECT, f"at least {end} bytes", len(data))
    if max(sent_at_ns, epoch) >= 2**63:
        raise MalformedData(_SUBJECT, "integers of 63 bits", max(sent_at_ns, epoch))
    starts = range(_HEAD, end, AUTHENTICATOR_LENGTH)
    history = tuple(data[start : start + AUTHENTICATOR_LENGTH] for start in starts)
    _check(history)
    return Plaintext(sent_at_ns, epoch, history, data[end:])


def message_id(content: bytes, group_id: bytes, time_ns: int) -> bytes:
    """Return SHA-256 of content, group id and time (8 bytes, big-endian): a message's id."""
    return hashlib.sha256(content + group_id + time_ns.to_bytes(_INTEGER, "big")).digest()


def _check(history: Sequence[bytes]) -> None:
    if not 1 <= len(history) <= MOST_HISTORY:
        raise MalformedData(_SUBJECT, f"1 to {MOST_HISTORY} authenticators", len(history))
