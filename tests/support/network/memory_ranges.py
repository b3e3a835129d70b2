"""The answer of CompareRanges about a log in memory, as the database has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chainkit.protocol.log_ranges import (
    ABSENT,
    DIGEST_LENGTH,
    LogRange,
    RangeContent,
    disputed_digest,
    range_digest,
)
from chainkit_node.types import HeldRanges
from support.network.originator import MemoryLog


def memory_ranges(
    log: MemoryLog,
    originator_id: int,
    through: int,
    ranges: Sequence[LogRange],
    disputed: Collection[int] = (),
) -> HeldRanges:
    """Return the contents of ranges of a log in which nothing has expired."""
    last = log.last()
    highest = last.sequence_id if last else 0

    def digest(sequence_id: int) -> bytes:
        if sequence_id in disputed:
            return disputed_digest(originator_id, sequence_id)
        held = log.at(sequence_id)
        return ABSENT if held is None else held.digest[:DIGEST_LENGTH]

    def digests(asked: LogRange, end: int) -> bytes:
        places = range(asked.part_count(end))
        if asked.level == 0:
            return b"".join(digest(asked.first + place) for place in places)
        parts = (digests(asked.child(place), end) for place in places)
        return b"".join(range_digest(asked.level - 1, each) for each in parts)

    contents = [RangeContent(digests(each, min(through, highest)), 0) for each in ranges]
    return HeldRanges(highest, contents)
