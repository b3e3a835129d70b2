"""Which sequence ids lie up to a block, by the stored rows: final blocks are forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from chainkit_indexer.storage.store import PAYLOAD_TABLES, first_sequence_id_from


def sequence_ids_up_to(
    connection: Connection, originator_ids: Iterable[int], block_number: int
) -> dict[int, int]:
    """Return the last sequence id of each originator in the blocks up to a height, 0 where none.

    A payload is in one of the tables, so between them they have every sequence id.
    """
    return {each: _last_up_to(connection, each, block_number) for each in originator_ids}


def _last_up_to(connection: Connection, originator_id: int, block_number: int) -> int:
    above = [
        first
        for table in PAYLOAD_TABLES
        if (first := first_sequence_id_from(connection, table, originator_id, block_number + 1))
    ]
    if above:
        return min(above) - 1
    return max(
        connection.scalar(
            select(func.max(table.c.sequence_id)).where(table.c.originator_id == originator_id)
        )
        or 0
        for table in PAYLOAD_TABLES
    )
