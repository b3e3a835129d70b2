"""Single envelopes of an originator, as another node's are compared with them; and disputes."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, insert, select, true

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.types import ENVELOPE_COLUMNS

_TABLE = schema.envelopes
_COLUMNS = tuple(_TABLE.c[name] for name in ENVELOPE_COLUMNS)


def read_newest_of(connection: Connection, originator_id: int) -> StoredEnvelope | None:
    """Return the envelope of the highest id, also where it has expired."""
    return _first(connection, originator_id, true(), _TABLE.c.sequence_id.desc())


def read_at(connection: Connection, originator_id: int, sequence_id: int) -> StoredEnvelope | None:
    """Return the envelope of an id, also where it has expired."""
    return _first(connection, originator_id, _TABLE.c.sequence_id == sequence_id)


def read_before(
    connection: Connection, originator_id: int, sequence_id: int
) -> StoredEnvelope | None:
    """Return the one of the highest id below an id."""
    below = _TABLE.c.sequence_id < sequence_id
    return _first(connection, originator_id, below, _TABLE.c.sequence_id.desc())


def read_after(
    connection: Connection, originator_id: int, sequence_id: int
) -> StoredEnvelope | None:
    """Return the one of the lowest id above an id."""
    above = _TABLE.c.sequence_id > sequence_id
    return _first(connection, originator_id, above, _TABLE.c.sequence_id)


def is_disputed(connection: Connection, originator_id: int, sequence_id: int) -> bool:
    """Tell whether the originator signed another envelope under an id, as far as is known."""
    table = schema.disputed_envelopes
    query = select(table.c.sequence_id).where(
        table.c.originator_id == originator_id, table.c.sequence_id == sequence_id
    )
    return connection.scalar(query) is not None


def insert_dispute(
    connection: Connection, originator_id: int, sequence_id: int, envelope: bytes
) -> None:
    """Keep another envelope under an id; there must be none yet."""
    connection.execute(
        insert(schema.disputed_envelopes).values(
            originator_id=originator_id, sequence_id=sequence_id, envelope=envelope
        )
    )


def _first(
    connection: Connection,
    originator_id: int,
    condition: ColumnElement[bool],
    order: ColumnElement[int] = _TABLE.c.sequence_id,
) -> StoredEnvelope | None:
    query = select(*_COLUMNS).where(_TABLE.c.originator_id == originator_id, condition)
    row = connection.execute(query.order_by(order).limit(1)).one_or_none()
    return None if row is None else StoredEnvelope._make(row)
