"""A pytest plugin with an indexer that has followed ``six_blocks``; test modules name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import FakeNode
from support.indexer.six_blocks import FINALITY, A, B, C, D, E, F


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    chain = FakeChain()
    chain.mine([A], [B, C], [], [D], [E], [F])
    node = FakeNode(chain, tmp_path / "node.db", FINALITY)
    node.catch_up()
    yield node
    node.store.close()
