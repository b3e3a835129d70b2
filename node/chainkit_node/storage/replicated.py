"""Envelopes that other nodes originated: compared with the stored ones, and stored."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, insert, select, true

from chainkit.misbehavior.received_batch import BatchOutcome, Gap, HeldEnvelope
from chainkit.protocol.originated_envelope import originator_digest, parse_originated
from chainkit.protocol.received_envelope import ReceivedEnvelope
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.schema import envelopes
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import ENVELOPE_COLUMNS
from chainkit_node.storage import schema
from chainkit_node.storage.charges import insert_charges
from chainkit_node.storage.gaps import GapRow, GapState, fill_gaps, insert_gap, read_last_change
from chainkit_node.storage.range_digests import forget_ranges

_TABLE = envelopes
_COLUMNS = tuple(_TABLE.c[name] for name in ENVELOPE_COLUMNS)


def read_before(
    connection: Connection, originator_id: int, sequence_id: int
) -> StoredEnvelope | None:
    """Return the envelope of the highest id below an id."""
    below = _TABLE.c.sequence_id < sequence_id
    return _first(connection, originator_id, below, _TABLE.c.sequence_id.desc())


def read_after(
    connection: Connection, originator_id: int, sequence_id: int
) -> StoredEnvelope | None:
    """Return the envelope of the lowest id above an id."""
    above = _TABLE.c.sequence_id > sequence_id
    return _first(connection, originator_id, above, _TABLE.c.sequence_id)


class StoredLog:
    """The stored envelopes of one originator, for ``compare_batch``."""

    def __init__(self, connection: Connection, originator_id: int) -> None:
        """Read within a transaction."""
        self._connection = connection
        self._originator_id = originator_id

    def last(self) -> HeldEnvelope | None:
        """Return the envelope of the highest id, also where it has expired."""
        newest = _first(self._connection, self._originator_id, true(), _TABLE.c.sequence_id.desc())
        return _held(newest)

    def at(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of an id, also where it has expired."""
        is_it = _TABLE.c.sequence_id == sequence_id
        return _held(_first(self._connection, self._originator_id, is_it))

    def before(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the highest id below an id."""
        return _held(read_before(self._connection, self._originator_id, sequence_id))

    def after(self, sequence_id: int) -> HeldEnvelope | None:
        """Return the envelope of the lowest id above an id."""
        return _held(read_after(self._connection, self._originator_id, sequence_id))


def store_judged(
    store: Store, connection: Connection, judged: BatchOutcome, now_ns: int
) -> tuple[list[StoredEnvelope], list[StoredEnvelope]]:
    """Store all that a batch of one originator changes, in the transaction that judged the batch.

    Return the rows that lie behind all others, in order, and the rows that lie where a gap was.
    ``now_ns`` is this node's clock. Raises StoreError where a sequence id is taken.
    """
    new, late = _rows(judged.new), _rows(judged.late)
    store.insert_envelopes(connection, [*new, *late])
    if taken := [*judged.new, *judged.late]:
        charges = [(each.sequence_id, each.charge) for each in taken]
        insert_charges(store, connection, taken[0].originator_id, charges)
    _insert_gaps(connection, judged.gaps, now_ns)
    if late:
        fill_gaps(connection, late[0].originator_id, [row.sequence_id for row in late], now_ns)
    others = [each.other for each in judged.disputes]
    for other in others:
        _keep_disputed(connection, other)
    # An envelope below the end changes the digests that other nodes compare.
    if changed := [*judged.late, *others]:
        ids = [each.sequence_id for each in changed]
        forget_ranges(connection, changed[0].originator_id, ids)
    return new, late


def _insert_gaps(connection: Connection, gaps: Sequence[Gap], now_ns: int) -> None:
    if not gaps:
        return
    changed_ns = max(now_ns, read_last_change(connection) + 1)
    for gap in gaps:
        state = GapState.OMITTED if gap.is_omitted else GapState.ASKED
        row = GapRow(gap.originator_id, gap.first_id, gap.last_id, state, changed_ns)
        insert_gap(connection, row)


def _keep_disputed(connection: Connection, other: ReceivedEnvelope) -> None:
    """Keep a second envelope under an id, unless a second one is kept already."""
    table = schema.disputed_envelopes
    key = {"originator_id": other.originator_id, "sequence_id": other.sequence_id}
    if connection.execute(select(table.c.sequence_id).filter_by(**key)).first() is None:
        connection.execute(insert(table).values(**key, envelope=other.envelope))


def _rows(received: Sequence[ReceivedEnvelope]) -> list[StoredEnvelope]:
    return [
        StoredEnvelope(
            each.originator_id,
            each.sequence_id,
            each.originator_ns,
            each.topic,
            each.expires_at,
            each.envelope,
        )
        for each in received
    ]


def _held(row: StoredEnvelope | None) -> HeldEnvelope | None:
    if row is None:
        return None
    digest = originator_digest(parse_originated(row.envelope).unsigned_originator_envelope)
    return HeldEnvelope(row.sequence_id, row.originator_ns, digest, row.envelope)


def _first(
    connection: Connection,
    originator_id: int,
    condition: ColumnElement[bool],
    order: ColumnElement[int] = _TABLE.c.sequence_id,
) -> StoredEnvelope | None:
    query = select(*_COLUMNS).where(_TABLE.c.originator_id == originator_id, condition)
    row = connection.execute(query.order_by(order).limit(1)).one_or_none()
    return None if row is None else StoredEnvelope._make(row)
