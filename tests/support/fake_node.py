"""An indexer of a fake chain, as tests drive it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import select

from chainkit.signatures import SigningKey
from chainkit_indexer import schema
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.step import step
from chainkit_indexer.store import Identity, Store
from chainkit_indexer.types import Idle, StepResult
from support.fake_chain import FakeChain

KEY = SigningKey(bytes([7]) * 32)


class FakeNode:
    """An indexer of a fake chain, one step at a time."""

    def __init__(self, chain: FakeChain, path: Path, window_blocks: int = 16) -> None:
        self.chain = chain
        self.path = path
        self.window_blocks = window_blocks
        self.store = Store.open(str(path), Identity.of(chain.record, KEY.public_key))

    def step(self, page_blocks: int = 200) -> StepResult:
        settings = IndexerSettings(self.chain.record, page_blocks, self.window_blocks)
        return step(self.chain.endpoint, self.store, KEY, settings)

    def catch_up(self, page_blocks: int = 200) -> None:
        while not isinstance(self.step(page_blocks), Idle):
            pass

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            query = select(table).order_by(*table.primary_key.columns)
            return [tuple(row) for row in connection.execute(query)]

    def content(self) -> list[list[tuple[Any, ...]]]:
        return [self.rows(table) for table in schema.metadata.sorted_tables]

    def journal(self) -> list[tuple[int, int, str, int | None]]:
        names = [column.name for column in schema.journal.columns]
        rows = [dict(zip(names, row, strict=True)) for row in self.rows(schema.journal)]
        return [
            (row["reorg_id"], row["sequence_id"], row["outcome"], row["new_sequence_id"])
            for row in rows
        ]
