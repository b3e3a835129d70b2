"""The ranges of missing envelopes that a client asks for (XIP-49 §3.3.5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chainkit.types import Cursor, Place


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """A query for an originator's envelopes of the topic."""

    originator_id: int
    after: int
    """Exclusive."""
    through: int
    """Inclusive. An author can claim any id: ``through`` is a bound, and no count."""


def range_requests(missing: Iterable[Place], cursor: Cursor) -> list[RangeRequest]:
    """Return the ranges to ask for, in rising order without overlap.

    ``cursor`` has the highest known id of the topic for each originator. A range begins at the
    cursor, not at the missing id: ids in between may be missing, too. A place below the cursor was
    left out, and has a range of its own.
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
