"""Entries of this node's topic heads whose envelopes were pruned (ADR 38, ADR 64).

A head contains all that the node originated on a topic, so a client that never held an envelope
needs the entry for as long as the topic has heads: some 100 bytes, and the envelope has a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, select

from chainkit.protocol.topic_heads import Entry
from chainkit_node.storage import schema

_rows: Final = schema.pruned_entries.c
_COLUMNS: Final = tuple(_rows.keys())

InsertRows = Callable[[Connection, Table, Sequence[str], Sequence[Any]], None]
"""The database's fastest way, such as ``Store.insert_rows``."""


def insert_pruned_entries(
    insert: InsertRows,
    connection: Connection,
    originator_id: int,
    entries: Iterable[tuple[bytes, Entry]],
) -> None:
    """Store entries with their topics, in the transaction that deletes the envelopes."""
    rows = [
        (topic, originator_id, entry.sequence_id, entry.expires_at, entry.digest)
        # Sorted: the database finds the places of neighbours together.
        for topic, entry in sorted(entries)
    ]
    insert(connection, schema.pruned_entries, _COLUMNS, rows)


def read_pruned_entries(
    connection: Connection, topic: bytes, originator_id: int, after: int, limit: int
) -> list[Entry]:
    """Return up to ``limit`` entries of an originator on a topic after an id, in their order."""
    query = (
        select(_rows.sequence_id, _rows.digest, _rows.expires_at)
        .where(
            _rows.topic == topic, _rows.originator_id == originator_id, _rows.sequence_id > after
        )
        .order_by(_rows.sequence_id)
        .limit(limit)
    )
    return [Entry(*row) for row in connection.execute(query)]
