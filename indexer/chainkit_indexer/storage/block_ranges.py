"""Finds the payloads of a range of blocks.

Counted sequence ids rise with the blocks, so a range of blocks is a range of the primary key, whose
ends are found by bisection. Sparse ids come in any order (ADR 50): only their blocks show the
range, and the database of such a deployment has an index over the blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnCollection, ColumnElement, Connection, Table, and_, func, select, text

from chainkit_indexer.storage import schema

Columns = ColumnCollection[str, Any]
"""Those of a table or a query."""

PAYLOAD_TABLES: Final = (schema.envelope_logs, schema.quarantine)
"""The two tables of logs: each payload on the chain has one row in one of them."""


def create_block_indexes(connection: Connection) -> None:
    """Make the indexes over originators and blocks that sparse sequence ids need."""
    for table in PAYLOAD_TABLES:
        name = f"{table.name}_by_block"
        connection.execute(
            text(f"CREATE INDEX {name} ON {table.name} (originator_id, block_number)")
        )


@dataclass(frozen=True, slots=True)
class BlockCut:
    """Parts an originator's payloads at a block: the payloads above the block are ``above``."""

    originator_id: int
    last: int
    """Highest sequence id up to the block, 0 where there is none."""
    block_number: int | None
    """The block where ids are sparse; None where ``last`` is enough."""

    def above(self, columns: Columns) -> ColumnElement[bool]:
        """Return the condition for rows of a table with these columns."""
        is_originator: ColumnElement[bool] = columns.originator_id == self.originator_id
        if self.block_number is None:
            return and_(is_originator, columns.sequence_id > self.last)
        if "block_number" in columns:
            return and_(is_originator, columns.block_number > self.block_number)
        logs = schema.envelope_logs.c
        ids = select(logs.sequence_id).where(self.above(logs))
        return and_(is_originator, columns.sequence_id.in_(ids))

    def last_below(self, connection: Connection) -> int:
        """Return the highest sequence id up to which no id is of a payload above the block."""
        if self.block_number is None:
            return self.last
        logs = schema.envelope_logs.c
        lowest = connection.scalar(select(func.min(logs.sequence_id)).where(self.above(logs)))
        return self.last if lowest is None else min(self.last, lowest - 1)


def cuts_above(
    sequence_ids: Mapping[int, int], block_number: int, sparse: Collection[int]
) -> list[BlockCut]:
    """Return each originator's cut at a block, up to which ``sequence_ids`` are the highest.

    ``sparse`` are the originators whose ids are so.
    """
    return [
        BlockCut(originator_id, last, block_number if originator_id in sparse else None)
        for originator_id, last in sequence_ids.items()
    ]


def rows_within(
    connection: Connection,
    table: Table,
    columns: Columns,
    originator_id: int,
    blocks: tuple[int, int | None],
    sparse: Collection[int],
) -> ColumnElement[bool] | None:
    """Return the condition for an originator's rows in some blocks, or None where there are none.

    ``table`` is a payload table, ``columns`` are its own or those of a join with it. ``blocks`` are
    the first and the last, None for no last one.
    """
    first, last = blocks
    is_originator: ColumnElement[bool] = columns.originator_id == originator_id
    if originator_id in sparse:
        found = and_(is_originator, columns.block_number >= first)
        return found if last is None else and_(found, columns.block_number <= last)
    lowest = first_sequence_id_from(connection, table, originator_id, first)
    if lowest is None:
        return None
    found = and_(is_originator, columns.sequence_id >= lowest)
    after = (
        None if last is None else first_sequence_id_from(connection, table, originator_id, last + 1)
    )
    return found if after is None else and_(found, columns.sequence_id < after)


def served_ids_within(
    connection: Connection, sparse: Collection[int], first: int, last: int
) -> list[tuple[int, int, int]]:
    """Return the ids that sparse originators' payloads in some blocks have, of those served.

    Each as block number, originator id and sequence id, in rising order. Both blocks are included.
    """
    logs = schema.envelope_logs.c
    columns = (logs.block_number, logs.originator_id, logs.sequence_id)
    query = select(*columns).where(
        logs.originator_id.in_(sparse), logs.block_number.between(first, last)
    )
    return [(row[0], row[1], row[2]) for row in connection.execute(query.order_by(*columns))]


def sequence_ids_up_to(
    connection: Connection,
    originator_ids: Iterable[int],
    block_number: int,
    sparse: Collection[int],
) -> dict[int, int]:
    """Return the highest sequence id of each originator in the blocks up to a height, 0 where none.

    A payload is in one of the tables, so between them they have every sequence id.
    """
    return {
        each: (
            _highest(connection, each, block_number)
            if each in sparse
            else _last_up_to(connection, each, block_number)
        )
        for each in originator_ids
    }


def _last_up_to(connection: Connection, originator_id: int, block_number: int) -> int:
    above = [
        first
        for table in PAYLOAD_TABLES
        if (first := first_sequence_id_from(connection, table, originator_id, block_number + 1))
    ]
    return min(above) - 1 if above else _highest(connection, originator_id)


def _highest(connection: Connection, originator_id: int, block_number: int | None = None) -> int:
    found = 0
    for table in PAYLOAD_TABLES:
        query = select(func.max(table.c.sequence_id)).where(table.c.originator_id == originator_id)
        if block_number is not None:
            query = query.where(table.c.block_number <= block_number)
        found = max(found, connection.scalar(query) or 0)
    return found


def first_sequence_id_from(
    connection: Connection, table: Table, originator_id: int, block_number: int
) -> int | None:
    """Return the smallest sequence id in a payload table at or above a block, or None.

    Counted sequence ids rise with the blocks, so bisection over the primary key finds the id.
    """
    of_originator = table.c.originator_id == originator_id
    bounds = select(func.min(table.c.sequence_id), func.max(table.c.sequence_id))
    low, high = connection.execute(bounds.where(of_originator)).one()
    if low is None:
        return None
    found = None
    while low <= high:
        middle = (low + high) // 2
        row = connection.execute(
            select(table.c.sequence_id, table.c.block_number)
            .where(of_originator, table.c.sequence_id >= middle)
            .order_by(table.c.sequence_id)
            .limit(1)
        ).one()
        if row.block_number >= block_number:
            found, high = row.sequence_id, middle - 1
        else:
            low = row.sequence_id + 1
    return found
