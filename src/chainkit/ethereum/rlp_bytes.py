"""Encodes RLP directly from bytes (yellow paper, appendix B), for items encoded by the thousand.

PyPI's ``rlp`` builds and checks a tree of items first, which takes five times the work. Rows of an
export are still encoded with ``rlp``, and tests compare this module with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

EMPTY: Final = b"\x80"
"""RLP of no bytes."""

_STRING, _LIST = 0x80, 0xC0
_SHORTEST_LONG: Final = 56
"""From this length on, RLP encodes the length of the length."""

_STRING_HEADS: Final = tuple(bytes([_STRING + length]) for length in range(_SHORTEST_LONG))
_LIST_HEADS: Final = tuple(bytes([_LIST + length]) for length in range(_SHORTEST_LONG))


def encoded_bytes(value: bytes) -> bytes:
    """Return the RLP of bytes."""
    length = len(value)
    if length == 1 and value[0] < _STRING:
        return value
    if length < _SHORTEST_LONG:
        return _STRING_HEADS[length] + value
    return _long_head(_STRING, length) + value


def encoded_integer(value: int) -> bytes:
    """Return the RLP of an integer from 0: its shortest big-endian bytes, none for 0."""
    if value < _STRING:
        return bytes([value or _STRING])
    return encoded_bytes(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def encoded_list(items: Sequence[bytes]) -> bytes:
    """Return the RLP of a list of items that are encoded already."""
    content = b"".join(items)
    length = len(content)
    if length < _SHORTEST_LONG:
        return _LIST_HEADS[length] + content
    return _long_head(_LIST, length) + content


def _long_head(kind: int, length: int) -> bytes:
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([kind + _SHORTEST_LONG - 1 + len(size)]) + size
