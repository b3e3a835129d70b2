"""Times that fall in an originator's log: proved, and known of software that signs in parallel.

XIP-49 §3.2.7 has an originator's times rise with its sequence ids, and two envelopes prove that
they fell. A node of another make takes each time before it gives the id, so that under load two of
them change places. No envelope is lost, changed or withheld by that, and no lie need be behind it:
readers who sort by time see another order for as long as the fall. So such a proof says how much
harm was done, and people decide.
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
"""A longer fall is more than two clocks of a network may differ by: no load explains it."""


@dataclass(frozen=True, slots=True, order=True)
class Fall:
    """Two envelopes of an originator, of which the later id has the earlier time."""

    at_ns: int
    """The earlier id's time: nanoseconds since 1970, by the originator's clock."""
    by_ns: int
    """Nanoseconds by which the later id's time lies before that; more than 0."""


def find_fall(report: Report) -> Fall | None:
    """Return the fall that a proved report shows; None for another failure, or a longer fall.

    Call it for a report that was judged as proved. Raises MalformedData.
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
    """Say how often times fell, since when, and what that does to readers; one fall at least."""
    since = datetime.fromtimestamp(min(falls).at_ns // NANOSECONDS_PER_SECOND, UTC)
    longest_ms = max(each.by_ns for each in falls) / 1e6
    return (
        f"times fell {counted(len(falls), 'time')} since {since:%Y-%m-%d %H:%M:%S} UTC, "
        f"by {longest_ms:,.3g} ms at most: another order by time, nothing lost"
    )
