"""A pytest plugin with ``support.indexer.registry_node``; test modules name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.chain import LocalChain
from support.indexer.registry_node import RegistryNode, new_store


@pytest.fixture
def follower(local_chain: LocalChain, tmp_path: Path) -> Iterator[RegistryNode]:
    follower = RegistryNode(local_chain, new_store(local_chain, tmp_path / "node.db"))
    yield follower
    follower.store.close()
