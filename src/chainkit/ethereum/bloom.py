"""The filter that a block header carries over its logs (yellow paper, section 4.3.1).

The filter never denies a log that is there, but may affirm one that is not: a block whose filter
lacks a contract holds no log of the contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chainkit.signatures import keccak256

_BITS: Final = 2048
_BITS_PER_VALUE: Final = 3


def bloom_mask(values: Sequence[bytes]) -> int:
    """Return the bits that addresses (20 bytes) and topics (32 bytes) of logs set."""
    mask = 0
    for value in values:
        digest = keccak256(value)
        for pair in range(_BITS_PER_VALUE):
            mask |= 1 << (int.from_bytes(digest[2 * pair : 2 * pair + 2], "big") % _BITS)
    return mask


def bloom_of(values: Sequence[bytes]) -> bytes:
    """Return the filter of a block whose logs have these addresses and topics."""
    return bloom_mask(values).to_bytes(_BITS // 8, "big")


def may_hold(logs_bloom: bytes, mask: int) -> bool:
    """Return whether a block may hold a log with these bits; if not, the block holds none."""
    return int.from_bytes(logs_bloom, "big") & mask == mask
