"""A node's database for all tests of a file, each of which leaves the rows that it makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chainkit.signatures import SigningKey
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    identity = Identity.of(FakeChain().deployment, SigningKey(b"\5" * 32).public_key)
    opened = open_store(tmp_path_factory.mktemp("storage") / "node.db", identity)
    yield opened
    opened.close()
