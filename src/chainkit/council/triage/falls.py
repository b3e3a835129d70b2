"""Times that fall in an originator's log: proved, and known of software that signs in parallel.

By XIP-49 §3.2.7 an originator's times rise with its sequence ids, and two envelopes prove a fall. A
node of another make reads the clock before it gives the id, so that under load two envelopes change
places. Such a fall loses, changes or withholds no envelope, and needs no lie: readers who sort by
time see another order for as long as the fall. So the proof reports the harm that was done, and
people decide.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from chainkit.misbehavior.report import Report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.text.counting import counted
from chainkit.types import NANOSECONDS_PER_SECOND

_MOST_NS: Final = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND
"""Longer falls are not explained by load: two clocks of a network may not differ by more."""


@dataclass(frozen=True, slots=True, order=True)
class Fall:
    """Two envelopes of an originator, of which the later id has the earlier time."""

    at_ns: int
    """The earlier id's time: nanoseconds since 1970, by the originator's clock."""
    by_ns: int
    """Nanoseconds by which the later id's time lies before that; more than 0."""


def find_fall(report: Report) -> Fall | None:
    """Return the fall that a proved report shows; None for another failure, or a longer fall.

    Call this function for a report whose verdict is proved. Raises MalformedData.
    """
    if report.misbehavior is not Misbehavior.OUT_OF_ORDER or report.topics is not None:
        return None
    stated = [parse_originated(each).envelope for each in report.envelopes]
    stated.sort(key=lambda each: each.sequence_id)
    for lower, higher in pairwise(stated):
        by_ns = lower.originator_ns - higher.originator_ns
        if lower.sequence_id < higher.sequence_id and by_ns > 0:
            return Fall(lower.originator_ns, by_ns) if by_ns <= _MOST_NS else None
    return None


def falls_in_words(falls: Collection[Fall]) -> str:
    """Return how often times fell, since when, and the effect on readers; one fall at least."""
    since = datetime.fromtimestamp(min(falls).at_ns // NANOSECONDS_PER_SECOND, UTC)
    longest_ms = max(each.by_ns for each in falls) / 1e6
    return (
        f"times fell {counted(len(falls), 'time')} since {since:%Y-%m-%d %H:%M:%S} UTC, "
        f"by {longest_ms:,.3g} ms at most: another order by time, nothing lost"
    )
