"""Writes what a node holds as Parquet, for an auditor: one state, pinned to the cursor's block."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, select

from chainkit.cli.options import hex0x
from chainkit.errors import StoreError
from chainkit.exports import ExportWriter, Manifest
from chainkit.tables import ENVELOPES, JOURNAL, QUARANTINE
from chainkit_indexer import schema
from chainkit_indexer.store import Identity, Store, read_position
from chainkit_indexer.types import IndexedBlock

EXPORT_KIND: Final = "node"

_CHUNK_ROWS: Final = 1000
"""Rows in memory, and in a Parquet row group: the same for all, so that files are identical."""

_TABLES: Final = {
    "envelopes": (ENVELOPES, schema.envelopes),
    "quarantine": (QUARANTINE, schema.quarantine),
    "journal": (JOURNAL, schema.journal),
}


def write_export(store: Store, directory: Path) -> Manifest:
    """Export envelopes, quarantine and journal to a new folder; the same state gives same bytes.

    Safe while an indexer writes: everything is read in one transaction. Raises StoreError where
    nothing was indexed so far, or the folder exists or cannot be written.
    """
    with store.reading() as connection:
        position = read_position(connection)
        if position is None:
            raise StoreError(f"database {store.name}", "an indexed block", "none yet")
        with ExportWriter(directory, {name: pair[0] for name, pair in _TABLES.items()}) as writer:
            for name, (_, table) in _TABLES.items():
                _write_table(connection, writer, name, table)
            return writer.finish(**_about(store.identity, position))


def _write_table(connection: Connection, writer: ExportWriter, name: str, table: Table) -> None:
    columns = [table.c[column] for column in _TABLES[name][0].names]
    query = select(*columns).order_by(*table.primary_key.columns)
    rows = connection.execution_options(yield_per=_CHUNK_ROWS).execute(query).mappings()
    for chunk in rows.partitions():
        writer.write(name, [dict(row) for row in chunk])


def _about(identity: Identity, position: IndexedBlock) -> dict[str, Any]:
    return {
        "kind": EXPORT_KIND,
        "chain_id": identity.chain_id,
        "genesis_hash": hex0x(identity.genesis_hash),
        "contracts": {
            "GroupMessages": hex0x(identity.group_messages),
            "IdentityUpdates": hex0x(identity.identity_updates),
        },
        "from_block": identity.first_block,
        "to_block": position.header.number,
        "to_block_hash": hex0x(position.header.hash),
        "node_public_key": hex0x(identity.node_public_key),
    }
