"""The ranges of envelopes that a client asks for where some are missing (XIP-49 §3.3.5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chainkit.types import Cursor, Place


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """A question for an originator's envelopes of the topic."""

    originator_id: int
    after: int
    """Exclusive."""
    through: int
    """Inclusive. An author can claim any id: this is a bound, and no count."""


def range_requests(missing: Iterable[Place], cursor: Cursor) -> list[RangeRequest]:
    """Return the ranges to ask each originator for first, in rising order without overlap.

    ``cursor`` holds the highest known id of the topic for each originator. A range begins there,
    not at the missing id: others may be missing before it. A place below the cursor was left out,
    and is asked for alone.
    """
    requests: list[RangeRequest] = []
    for originator_id, sequence_id in sorted(missing):
        after = min(cursor[originator_id], sequence_id - 1)
        last = requests[-1] if requests else None
        if last is not None and last.originator_id == originator_id and after <= last.through:
            requests[-1] = replace(last, through=sequence_id)
        else:
            requests.append(RangeRequest(originator_id, after, sequence_id))
    return requests
