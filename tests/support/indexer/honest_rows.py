"""The rows that an indexer may hold: those of a clean run, on each branch that the chain had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, FromClause, select

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store

Row = tuple[Any, ...]
Tables = Mapping[str, list[Row]]

PAYLOADS = (schema.chain_envelopes, schema.quarantine)
BY_HISTORY = {"journal", "reorgs", "raw_transactions", "registry_cursor", "registry_blocks"}
"""Tables that also tell what this node went through and how far it is with what is done beside
the steps, not only what the chain holds."""


def rows_of(connection: Connection, table: FromClause) -> list[Row]:
    query = select(table).order_by(*table.primary_key)
    return [tuple(row) for row in connection.execute(query)]


def chain_tables(store: Store, with_journal: bool = False) -> Tables:
    """Every table that is a function of the chain and the key, as it is stored."""
    with store.reading() as connection:
        return {
            name: rows_of(connection, table)
            for name, table in schema.metadata.tables.items()
            if name not in BY_HISTORY or (with_journal and name in ("journal", "reorgs"))
        }


class HonestRows:
    """Learns from clean runs; then says whether a database holds what some moment of a clean
    run would hold: all rows up to the cursor's block, none else, each to the byte."""

    def __init__(self) -> None:
        self._parents: dict[bytes, bytes] = {}
        self._rows: dict[tuple[bytes, str], list[Row]] = {}

    def learn(self, store: Store) -> None:
        """Take over what a clean run stored; it must still know all of its blocks."""
        learned: defaultdict[tuple[bytes, str], list[Row]] = defaultdict(list)
        with store.reading() as connection:
            for table in PAYLOADS:
                for row in connection.execute(select(table).order_by(*table.primary_key)):
                    learned[row.block_hash, table.name].append(tuple(row))
            for block in connection.execute(select(schema.blocks)):
                self._parents[block.hash] = block.parent_hash
                for table in PAYLOADS:
                    self._rows[block.hash, table.name] = learned[block.hash, table.name]

    def check(self, store: Store) -> None:
        """Fail on any row too much, too little, or another one."""
        with store.reading() as connection:
            cursor = connection.execute(select(schema.cursor)).one_or_none()
            for table in PAYLOADS:
                expected = self._up_to(cursor.block_hash, table.name) if cursor else []
                assert rows_of(connection, table) == expected, (table.name, cursor)
            logs, envelopes = (
                [row[:2] for row in rows_of(connection, table)]
                for table in (schema.envelope_logs, schema.envelopes)
            )
            assert logs == envelopes, cursor
            for block in connection.execute(select(schema.blocks)):
                assert self._parents[block.hash] == block.parent_hash, block.number
            for entry in connection.execute(select(schema.journal)):
                self._check_entry(entry)

    def _up_to(self, block_hash: bytes, name: str) -> list[Row]:
        blocks: list[list[Row]] = []
        while block_hash in self._parents:
            blocks.append(self._rows[block_hash, name])
            block_hash = self._parents[block_hash]
        return [row for rows in reversed(blocks) for row in rows]

    def _check_entry(self, entry: Any) -> None:
        found = [
            dict(zip(table.columns.keys(), row, strict=True))
            for table in PAYLOADS
            for row in self._rows[entry.block_hash, table.name]
        ]
        (row,) = [row for row in found if row["sequence_id"] == entry.sequence_id]
        assert row["transaction_hash"] == entry.transaction_hash
        assert row.get("envelope") == entry.envelope
