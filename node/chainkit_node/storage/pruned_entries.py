"""Entries of this node's topic heads whose envelopes were pruned, or soon are (ADR 38, 64, 88).

A head contains all that the node originated on a topic, so a client that never held an envelope
needs the entry for as long as the topic has heads: some 100 bytes, and the envelope has a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, select

from chainkit.protocol.topic_heads import Entry
from chainkit_node.storage import schema

_rows: Final = schema.pruned_entries.c
_COLUMNS: Final = tuple(_rows.keys())

PrunedEntry = tuple[bytes, int, int, int, bytes]
"""Topic, originator, sequence id, expiry in seconds since 1970, and the 32 bytes of the digest."""

InsertRows = Callable[[Connection, Table, Sequence[str], Sequence[Any]], None]
"""Such as ``Store.insert_new``."""


def insert_pruned_entries(
    insert: InsertRows, connection: Connection, rows: Sequence[PrunedEntry]
) -> None:
    """Store entries before the envelopes are deleted; those that are stored already stay."""
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
