"""Sequence ids of originators that are missing, as ranges; each function is within a transaction.

The ranges of one originator do not overlap. A range that is filled in part is cut into pieces.
Ids that have expired leave the ranges, but for long runs: see ``learned_ids.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from chainkit_node.storage import schema
from chainkit_node.storage.id_blocks import BLOCK_IDS
from chainkit_node.storage.learned_ids import LEARNED
from chainkit_node.storage.pruned_ids import PRUNED

MOST_READ: Final = 1_000
"""Ranges of one look."""


class GapState(StrEnum):
    """A state of sequence ids of an originator that are missing."""

    ASKED = "asked"
    """Other nodes are asked for the envelopes."""
    EXPIRED = "expired"
    """The envelopes were left out because they had expired."""
    OMITTED = "omitted"
    """The envelopes cannot have expired, and no other node has them so far."""
    FILLED = "filled"
    """The envelopes came later."""


_TABLE: Final = schema.gaps
_UNFILLED: Final = (GapState.ASKED, GapState.OMITTED, GapState.EXPIRED)


class GapRow(NamedTuple):
    """A row of ``gaps``; both ends are included."""

    originator_id: int
    first_id: int
    last_id: int
    state: str
    """A ``GapState``."""
    changed_ns: int
    """When the state was set: this node's time, which never falls."""


def insert_gap(connection: Connection, gap: GapRow) -> None:
    """Store a gap that is new."""
    connection.execute(insert(_TABLE).values(gap._asdict()))


def fill_gaps(
    connection: Connection, originator_id: int, sequence_ids: Iterable[int], now_ns: int
) -> None:
    """Record that missing envelopes were stored; ids that were not missing are left out."""
    ids = sorted(sequence_ids)
    for run in LEARNED.remove(connection, originator_id, ids):
        changed_ns = _next_ns(connection, now_ns)
        state = GapState.FILLED.value
        insert_gap(connection, GapRow(originator_id, run[0], run[-1], state, changed_ns))
    for run in runs_of(ids):
        change_gaps(connection, originator_id, run, GapState.FILLED, _UNFILLED, now_ns)


def change_gaps(
    connection: Connection,
    originator_id: int,
    run: range,
    state: GapState,
    before: Collection[GapState],
    now_ns: int,
) -> bool:
    """Change the state of the missing ids within a run, where the state is one of ``before``.

    Return whether there are such ids.
    """
    is_one_of = _TABLE.c.state.in_([each.value for each in before])
    query = select(_TABLE).where(*_meets(originator_id, run), is_one_of)
    gaps = [GapRow._make(row) for row in connection.execute(query)]
    for gap in gaps:
        ids = range(max(run[0], gap.first_id), min(run[-1], gap.last_id) + 1)
        _cut(connection, gap, ids, state, now_ns)
    return bool(gaps)


def read_asked_gaps(connection: Connection, originator_id: int) -> list[GapRow]:
    """Return an originator's gaps that nobody has explained, the first MOST_READ by their ids."""
    is_asked = _TABLE.c.state == GapState.ASKED.value
    query = select(_TABLE).where(_TABLE.c.originator_id == originator_id, is_asked)
    ordered = query.order_by(_TABLE.c.first_id).limit(MOST_READ)
    return [GapRow._make(row) for row in connection.execute(ordered)]


def unknown_gaps(
    connection: Connection, originator_id: int, held: Collection[int], ids: range
) -> list[range]:
    """Return ids of a range that are not held, not pruned, and not known as missing, as runs."""
    is_unfilled = _TABLE.c.state.in_([each.value for each in _UNFILLED])
    query = select(_TABLE.c.first_id, _TABLE.c.last_id).where(
        *_meets(originator_id, ids), is_unfilled
    )
    known = [range(first, last + 1) for first, last in connection.execute(query)]
    for expired in (PRUNED, LEARNED):
        known += expired.runs(connection, originator_id, ids)
    # A hostile id may make a gap of 2^62 ids: only the ends between held ids are looked at.
    edges = sorted({ids.start - 1, *held, ids.stop})
    runs = [range(low + 1, high) for low, high in pairwise(edges)]
    return [part for run in runs if run for part in _outside(run, known)]


def read_filled_after(connection: Connection, changed_ns: int) -> list[GapRow]:
    """Return the ranges that were filled after a moment, up to MOST_READ, in that order."""
    is_newer = _TABLE.c.state == GapState.FILLED.value, _TABLE.c.changed_ns > changed_ns
    query = select(_TABLE).where(*is_newer).order_by(_TABLE.c.changed_ns).limit(MOST_READ)
    return [GapRow._make(row) for row in connection.execute(query)]


def read_last_change(connection: Connection) -> int:
    """Return the moment of the last change, 0 before the first."""
    tables = _TABLE, schema.expired_blocks
    return max(connection.scalar(select(func.max(each.c.changed_ns))) or 0 for each in tables)


def forget_filled(connection: Connection, before_ns: int, most: int) -> bool:
    """Forget ranges that were filled before a moment, but for the last change of all.

    Return whether there may be more than ``most``, the oldest, which are forgotten at once.
    """
    last = read_last_change(connection)
    is_filled = _TABLE.c.state == GapState.FILLED.value
    is_old = is_filled, _TABLE.c.changed_ns < min(before_ns, last)
    query = select(_TABLE.c.changed_ns).where(*is_old).order_by(_TABLE.c.changed_ns).limit(most)
    oldest = list(connection.scalars(query))
    if oldest:
        connection.execute(delete(_TABLE).where(is_filled, _TABLE.c.changed_ns <= oldest[-1]))
    return len(oldest) == most


def _cut(connection: Connection, gap: GapRow, ids: range, state: GapState, now_ns: int) -> None:
    changed_ns = _next_ns(connection, now_ns)
    connection.execute(delete(_TABLE).where(*_is(gap)))
    if gap.first_id < ids[0]:
        insert_gap(connection, gap._replace(last_id=ids[0] - 1))
    if state is GapState.EXPIRED and len(ids) <= BLOCK_IDS:
        LEARNED.add(connection, gap.originator_id, ids, changed_ns=changed_ns)
    else:
        insert_gap(connection, GapRow(gap.originator_id, ids[0], ids[-1], state.value, changed_ns))
    if ids[-1] < gap.last_id:
        insert_gap(connection, gap._replace(first_id=ids[-1] + 1))


def _meets(originator_id: int, ids: range) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of gaps that have some of the ids."""
    is_of = _TABLE.c.originator_id == originator_id
    # Gaps do not overlap: the last that begins before the ids is the first that may reach them.
    begins = select(func.max(_TABLE.c.first_id)).where(is_of, _TABLE.c.first_id <= ids[0])
    return (
        is_of,
        _TABLE.c.first_id >= func.coalesce(begins.scalar_subquery(), ids[0]),
        _TABLE.c.first_id <= ids[-1],
        _TABLE.c.last_id >= ids[0],
    )


def _is(gap: GapRow) -> tuple[ColumnElement[bool], ...]:
    return _TABLE.c.originator_id == gap.originator_id, _TABLE.c.first_id == gap.first_id


def _next_ns(connection: Connection, now_ns: int) -> int:
    return max(now_ns, read_last_change(connection) + 1)


def _outside(run: range, known: Iterable[range]) -> Iterable[range]:
    """Cut known ranges out of a run."""
    start = run.start
    for each in sorted(known, key=lambda known: known.start):
        if start < min(each.start, run.stop):
            yield range(start, min(each.start, run.stop))
        start = max(start, each.stop)
    if start < run.stop:
        yield range(start, run.stop)


def runs_of(sequence_ids: Iterable[int]) -> Iterable[range]:
    """Return ids as runs, in their order."""
    ids = sorted(sequence_ids)
    if not ids:
        return []
    cuts = [(before, each) for before, each in pairwise(ids) if each > before + 1]
    edges = (ids[0], *(edge for cut in cuts for edge in cut), ids[-1])
    return [range(start, end + 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
