"""The time of the chain's envelopes: one rule for all who build, compare or check them (ADR 45).

A payload's time is the second after its block's, and in it a microsecond for each sequence id:

    (block timestamp + 1) s + (sequence id modulo 1,000,000) µs

It follows from the block and the payload alone, so one transaction proves it. Within one timestamp,
which a block's payloads and often several blocks have, it rises with the sequence id. It is later
than any clock showed before the block was mined, so a message that was sent before a commit of
the same second has an earlier time. The nanoseconds between two microseconds are for messages that
name the first of two commits, and come before the second.

Times of one timestamp fall where the ids reach a multiple of a million. Such a fall is no evidence:
only blocks' timestamps are compared.
"""

from __future__ import annotations

from typing import Any, Final

from chainkit.errors import MalformedEnvelope
from chainkit.types import NANOSECONDS_PER_SECOND

NANOSECONDS_PER_PAYLOAD: Final = 1_000
"""Between the times of two payloads in succession, in nanoseconds."""

_PAYLOADS_PER_SECOND: Final = NANOSECONDS_PER_SECOND // NANOSECONDS_PER_PAYLOAD

MAXIMUM_BLOCK_TIMESTAMP: Final = (2**63 - 1) // NANOSECONDS_PER_SECOND - 2
"""Seconds since 1970 whose payloads' times ``originator_ns`` can hold: until the year 2262."""


def chain_time(block_timestamp: Any, sequence_id: Any) -> Any:
    """Return the time in nanoseconds since 1970 of a payload, or of whole columns of payloads.

    ``block_timestamp`` is in seconds, 0 to MAXIMUM_BLOCK_TIMESTAMP, which is not checked. Both are
    numbers, unsigned NumPy arrays of 64 bits, or Spark columns.
    """
    within = sequence_id % _PAYLOADS_PER_SECOND * NANOSECONDS_PER_PAYLOAD
    return (block_timestamp + 1) * NANOSECONDS_PER_SECOND + within


def originator_ns(block_timestamp: int, sequence_id: int) -> int:
    """Return the time of a chain's envelope in nanoseconds since 1970 (XIP-49 §3.2.1).

    Raises MalformedEnvelope for a block's timestamp whose times the field, an int64, cannot hold.
    """
    if not 0 <= block_timestamp <= MAXIMUM_BLOCK_TIMESTAMP:
        expected = f"seconds from 0 to {MAXIMUM_BLOCK_TIMESTAMP}"
        raise MalformedEnvelope("block time", expected, block_timestamp)
    return int(chain_time(block_timestamp, sequence_id))


def block_timestamp(time_ns: int) -> int:
    """Return the only block's timestamp, in seconds, whose payloads may have a time.

    Below 0 or above MAXIMUM_BLOCK_TIMESTAMP where no block's payloads have it.
    """
    return time_ns // NANOSECONDS_PER_SECOND - 1


def is_of_block(time_ns: int, sequence_id: int) -> bool:
    """Return whether a payload with a sequence id has the time in some block."""
    timestamp = block_timestamp(time_ns)
    is_held = 0 <= timestamp <= MAXIMUM_BLOCK_TIMESTAMP
    return is_held and chain_time(timestamp, sequence_id) == time_ns
