"""Entries of this node's topic heads whose envelopes were pruned (ADR 38, ADR 64).

A head contains all that the node originated on a topic, so a client that never held an envelope
needs the entry for as long as the topic has heads: some 100 bytes, and the envelope has a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, insert, select

from chainkit.protocol.topic_heads import Entry, entry_of
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.storage import schema

_rows = schema.pruned_entries.c


def insert_pruned_entries(connection: Connection, rows: Iterable[StoredEnvelope]) -> None:
    """Store the entries of envelopes, in the transaction that deletes these."""
    entries = [(row, entry_of(row.envelope)) for row in rows]
    values = [
        {
            "topic": row.topic,
            "originator_id": row.originator_id,
            "sequence_id": row.sequence_id,
            "expires_at": row.expires_at,
            "digest": entry.digest,
        }
        for row, entry in entries
    ]
    if values:
        connection.execute(insert(schema.pruned_entries), values)


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
