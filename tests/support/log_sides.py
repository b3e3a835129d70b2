"""One side of a comparison of logs, kept in memory: the oracle of what a node answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chainkit.protocol.log_comparison import Comparison, Differences
from chainkit.protocol.log_ranges import (
    ABSENT,
    DIGEST_LENGTH,
    LogRange,
    RangeContent,
    disputed_digest,
    range_digest,
)

ORIGINATOR = 100


@dataclass
class Side:
    """Digests by sequence id; ``expired`` ones may be among them, or not any more."""

    digests: Mapping[int, bytes]
    expired: frozenset[int] = frozenset()
    highest: int = field(init=False)
    _contents: dict[tuple[LogRange, int], RangeContent] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._contents = {}
        self.highest = max([0, *self.digests, *self.expired])

    def content(self, asked: LogRange, through: int) -> RangeContent:
        """Return the content of a range by its definition, from all of its ids."""
        key = (asked, through)
        if key not in self._contents:
            self._contents[key] = self._made(asked, through)
        return self._contents[key]

    def _made(self, asked: LogRange, through: int) -> RangeContent:
        digests, expired = [], 0
        for place in range(asked.part_count(through)):
            if asked.level == 0:
                each = asked.first + place
                digests.append(self.digests.get(each, ABSENT))
                is_expired = each in self.expired
            else:
                part = asked.child(place)
                digests.append(range_digest(part.level, self.content(part, through).digests))
                is_expired = self.has_expired(part, through)
            expired |= is_expired << place
        return RangeContent(b"".join(digests), expired)

    def has_expired(self, asked: LogRange, through: int) -> bool:
        """Return whether a range has only ids that expired and are not stored any more."""
        ids = range(asked.first, min(asked.last, through) + 1)
        return all(each in self.expired and each not in self.digests for each in ids)


def side(versions: Mapping[int, int], expired: Iterable[int] = ()) -> Side:
    """Return a side that holds a version of each envelope by its id; version 0 is a dispute."""
    return Side(
        {
            each: bytes([version]) * DIGEST_LENGTH if version else disputed_digest(ORIGINATOR, each)
            for each, version in versions.items()
        },
        frozenset(expired),
    )


@dataclass
class Compared:
    """A comparison that ended, and how much travelled."""

    differences: Differences
    rounds: int
    ranges: int
    digest_bytes: int


def compared(here: Side, there: Side, after: int = 0) -> Compared:
    """Run a comparison to its end."""
    comparison = Comparison(ORIGINATOR, here.highest, after)
    rounds = ranges = digest_bytes = 0
    while comparison.asked:
        asked = comparison.asked
        comparison.learn_highest(there.highest)
        answers = contents(there, asked, comparison.through)
        rounds, ranges = rounds + 1, ranges + len(asked)
        digest_bytes += sum(len(answer.digests) for answer in answers)
        comparison.compare(contents(here, asked, comparison.through), answers)
    return Compared(comparison.differences(), rounds, ranges, digest_bytes)


def contents(held: Side, asked: Sequence[LogRange], through: int) -> list[RangeContent]:
    """Return a side's contents of some ranges."""
    return [held.content(each, through) for each in asked]


def ids(runs: Iterable[range]) -> set[int]:
    """Return the sequence ids of some runs, which must not overlap and must rise."""
    flat = [each for run in runs for each in run]
    assert flat == sorted(set(flat))
    return set(flat)
