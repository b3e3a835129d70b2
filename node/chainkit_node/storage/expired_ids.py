"""Which sequence ids of a range have expired: by the rows that are stored still, and by gaps.

Those that this node pruned are known by themselves: see ``pruned_ids.py``.

Ids that this node learned to have expired are in bitmaps, or in gaps where there are many in a run.
Gaps do not overlap, so of the gaps that begin before an id, only the last can reach it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, select

from chainkit.protocol.log_ranges import ABSENT, LogRange, split
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapState
from chainkit_node.storage.id_blocks import BLOCK_IDS
from chainkit_node.storage.learned_ids import LEARNED
from chainkit_node.storage.pruned_ids import PRUNED

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
_MOST_BLOCKS: Final = 4


def read_last_expired(connection: Connection, originator_id: int) -> int:
    """Return the last id that expired and is not stored any more; 0 where there is none."""
    last = _gap_at(connection, originator_id, _LARGEST_ID).stop - 1
    return max(last, LEARNED.last_id(connection, originator_id))


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
    learned = _learned(connection, originator_id, asked, through)
    for place, digest in enumerate(split(digests)):
        if digest == ABSENT:
            ids = asked.part_ids(place)
            last = min(ids[-1], through)
            if ids[0] not in gap:
                gap = _gap_at(connection, originator_id, ids[0])
            is_learned = ids[0] <= last and _all_set(
                learned >> ids[0] - asked.first, last - ids[0] + 1
            )
            bits |= (is_learned or (ids[0] in gap and last in gap)) << place
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
    pruned = PRUNED.read(connection, originator_id, leaf.first, last) if last >= leaf.first else 0
    pruned |= _learned(connection, originator_id, leaf, through)
    bits: int = pruned | sum(1 << each - leaf.first for each in expired)
    return bits


def _learned(connection: Connection, originator_id: int, asked: LogRange, through: int) -> int:
    """Return the ids of a range that this node will never get: bit n is its id n.

    0 for a range of many blocks: whoever compares it asks for its parts.
    """
    ids = range(asked.first, min(asked.last, through) + 1)
    if len(ids) > _MOST_BLOCKS * BLOCK_IDS:
        return 0
    bits = 0
    for run in LEARNED.runs(connection, originator_id, ids):
        bits |= (1 << len(run)) - 1 << run.start - asked.first
    return bits


def _all_set(bits: int, count: int) -> bool:
    """Tell whether the lowest bits are all set, so many of them."""
    mask = (1 << count) - 1
    return bits & mask == mask


def _gap_at(connection: Connection, originator_id: int, sequence_id: int) -> range:
    """Return the last gap that begins up to an id; one before all ids where there is none."""
    ids = {"originator": originator_id, "last": sequence_id}
    found = connection.execute(_LAST_GAP, ids).first()
    return range(1) if found is None else range(found.first_id, found.last_id + 1)
