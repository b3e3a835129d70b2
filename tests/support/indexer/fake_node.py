"""An indexer of a fake chain, as tests drive it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import select

from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.follow.step import step
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Idle, StepResult
from support.chains.fake_chain import FakeChain

KEY = SigningKey(bytes([7]) * 32)


@cache
def _new_database(identity: Identity) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "new.db")
        Store.open(str(path), identity).close()
        return path.read_bytes()


def open_store(path: Path | str, identity: Identity) -> Store:
    """Open a database, of a path or a URL; a new file is a copy, which takes less time."""
    if isinstance(path, Path) and not path.exists():
        path.write_bytes(_new_database(identity))
    return Store.open(str(path), identity)


class FakeNode:
    """An indexer of a fake chain, one step at a time."""

    def __init__(
        self, chain: FakeChain, path: Path | str, window_blocks: int = 16, recent_blocks: int = 16
    ) -> None:
        self.chain = chain
        self.path = path
        self.window_blocks = window_blocks
        self.finality = FinalityPolicy(blocks=window_blocks)
        self.recent_blocks = recent_blocks
        self.serves_final_only = False
        self.trusts_one_endpoint = False
        self.store = open_store(path, Identity.of(chain.deployment, KEY.public_key))

    def step(self, page_blocks: int = 200) -> StepResult:
        settings = IndexerSettings(
            self.chain.deployment,
            page_blocks,
            self.finality,
            self.serves_final_only,
            self.trusts_one_endpoint,
        )
        reader = PageReader(settings, Signer(KEY), recent_blocks=self.recent_blocks)
        return step(self.chain.endpoint, self.store, settings, reader)

    def catch_up(self, page_blocks: int = 200) -> None:
        while not isinstance(self.step(page_blocks), Idle):
            pass

    def catch_up_without_receipts(self, page_blocks: int) -> None:
        """Follow while the endpoint proves nothing; it does so again afterwards."""
        self.trusts_one_endpoint = True
        self.chain.offers_receipts = False
        self.catch_up(page_blocks)
        self.chain.offers_receipts = True
        self.chain.endpoint.block_receipts_from = 0.0

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            query = select(table).order_by(*table.primary_key)
            return [tuple(row) for row in connection.execute(query)]

    def content(self) -> list[list[tuple[Any, ...]]]:
        return [self.rows(table) for table in schema.metadata.sorted_tables]

    @contextmanager
    def refusing(self, error: type[Exception], match: str) -> Iterator[None]:
        """Expect an error of what is done within, and that it changes nothing in the database."""
        before = self.content()
        with pytest.raises(error, match=match):
            yield
        assert self.content() == before

    def journal(self) -> list[tuple[int, int, str, int | None]]:
        names = [column.name for column in schema.journal.columns]
        rows = [dict(zip(names, row, strict=True)) for row in self.rows(schema.journal)]
        return [
            (row["reorg_id"], row["sequence_id"], row["outcome"], row["new_sequence_id"])
            for row in rows
        ]
