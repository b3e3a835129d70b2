"""Which sequence ids of a range have expired: by the rows that are stored still, and by gaps.

Gaps do not overlap, so those that lie before an id end before it, but for the last of them.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Select, select

from chainkit.protocol.log_ranges import ABSENT, LogRange, split
from chainkit_indexer.storage import schema
from chainkit_indexer.types import GapState

_envelopes: Final = schema.envelopes.c
_gaps: Final = schema.gaps.c


def read_last_expired(connection: Connection, originator_id: int) -> int:
    """Return the last id that expired and is not stored any more; 0 where there is none."""
    last = _expired_gaps(originator_id).order_by(_gaps.first_id.desc()).limit(1)
    gap = connection.execute(last).first()
    return 0 if gap is None else int(gap.last_id)


def read_expired(
    connection: Connection,
    originator_id: int,
    asked: LogRange,
    digests: bytes,
    through: int,
    now: int,
) -> int:
    """Return the bits of the parts that have expired (``RangeContent.expired``).

    ``digests`` are the range's, of ids up to ``through``; ``now`` is in seconds since 1970.
    """
    if asked.level == 0:
        return _expired_in_leaf(connection, originator_id, asked, through, now)
    bits, gap = 0, range(0)
    for place, digest in enumerate(split(digests)):
        if digest == ABSENT:
            ids = asked.part_ids(place)
            last = min(ids[-1], through)
            if ids[0] not in gap:
                gap = _gap_at(connection, originator_id, ids[0])
            bits |= (ids[0] in gap and last in gap) << place
    return bits


def _expired_in_leaf(
    connection: Connection, originator_id: int, leaf: LogRange, through: int, now: int
) -> int:
    last = min(leaf.last, through)
    rows = select(_envelopes.sequence_id).where(
        _envelopes.originator_id == originator_id,
        _envelopes.sequence_id.between(leaf.first, last),
        _envelopes.expires_at <= now,
    )
    expired = set(connection.scalars(rows))
    inside = _expired_gaps(originator_id).where(_gaps.first_id.between(leaf.first, last))
    gaps = [range(gap.first_id, gap.last_id + 1) for gap in connection.execute(inside)]
    for gap in (_gap_at(connection, originator_id, leaf.first), *gaps):
        expired.update(range(max(gap.start, leaf.first), min(gap.stop, last + 1)))
    return sum(1 << each - leaf.first for each in expired)


def _gap_at(connection: Connection, originator_id: int, sequence_id: int) -> range:
    """Return the gap with an id if it expired, or one that ends before it, which may be empty."""
    before = _expired_gaps(originator_id).where(_gaps.first_id <= sequence_id)
    found = connection.execute(before.order_by(_gaps.first_id.desc()).limit(1)).first()
    return range(0) if found is None else range(found.first_id, found.last_id + 1)


def _expired_gaps(originator_id: int) -> Select[tuple[int, int]]:
    return select(_gaps.first_id, _gaps.last_id).where(
        _gaps.originator_id == originator_id, _gaps.state == GapState.EXPIRED.value
    )
