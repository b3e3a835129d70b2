"""Which sequence ids of a range have expired: by the rows that are stored still, and by gaps.

Those that this node pruned are known by themselves: see ``pruned_ids.py``.

Gaps do not overlap, so of the gaps that begin before an id, only the last can reach it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, select

from chainkit.protocol.log_ranges import ABSENT, LogRange, split
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapState
from chainkit_node.storage.pruned_ids import read_pruned

_envelopes: Final = envelopes.c
_gaps: Final = schema.gaps.c

_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_FIRST: Final = bindparam("first", type_=BigInteger())
_LAST: Final = bindparam("last", type_=BigInteger())
# Written once, because an answer may have 128 leaves.
_EXPIRED: Final = select(_envelopes.sequence_id).where(
    _envelopes.originator_id == _ORIGINATOR,
    _envelopes.sequence_id.between(_FIRST, _LAST),
    _envelopes.expires_at <= bindparam("now", type_=BigInteger()),
)
_GAPS: Final = select(_gaps.first_id, _gaps.last_id).where(
    _gaps.originator_id == _ORIGINATOR, _gaps.state == GapState.EXPIRED.value
)
_GAPS_INSIDE: Final = _GAPS.where(_gaps.first_id.between(_FIRST, _LAST))
_LAST_GAP: Final = _GAPS.where(_gaps.first_id <= _LAST).order_by(_gaps.first_id.desc()).limit(1)
_LARGEST_ID: Final = 2**63 - 1


def read_last_expired(connection: Connection, originator_id: int) -> int:
    """Return the last id that expired and is not stored any more; 0 where there is none."""
    return _gap_at(connection, originator_id, _LARGEST_ID).stop - 1


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
    bits, gap = 0, range(1)
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
    ids = {"originator": originator_id, "first": leaf.first, "last": last}
    expired = set(connection.scalars(_EXPIRED, ids | {"now": now}))
    gaps = [range(first, end + 1) for first, end in connection.execute(_GAPS_INSIDE, ids)]
    for gap in (_gap_at(connection, originator_id, leaf.first), *gaps):
        expired.update(range(max(gap.start, leaf.first), min(gap.stop, last + 1)))
    pruned = read_pruned(connection, originator_id, leaf.first, last) if last >= leaf.first else 0
    bits: int = pruned | sum(1 << each - leaf.first for each in expired)
    return bits


def _gap_at(connection: Connection, originator_id: int, sequence_id: int) -> range:
    """Return the last gap that begins up to an id; one before all ids where there is none."""
    ids = {"originator": originator_id, "last": sequence_id}
    found = connection.execute(_LAST_GAP, ids).first()
    return range(1) if found is None else range(found.first_id, found.last_id + 1)
