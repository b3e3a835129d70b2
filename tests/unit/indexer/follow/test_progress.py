"""A store's memory of the cursor must equal its database."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from chainkit.errors import StoreError, StoreUnavailable
from chainkit.types import BlockReference
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Advanced, CursorState, Idle, RolledBack
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import FakeNode

A, B = Post("a"), Post("b")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(FakeChain(), tmp_path / "node.db", window_blocks=2)
    yield node
    node.store.close()


def stored(node: FakeNode) -> CursorState:
    store = Store.open_existing(str(node.path))
    try:
        return store.read_cursor_state()
    finally:
        store.close()


def comparable(progress: CursorState) -> tuple[BlockReference, dict[int, int], int]:
    position = progress.position
    assert position is not None
    return position.header.reference, dict(position.sequence_ids), progress.final_block


def test_progress__before_the_first_page__is_that_of_the_database(node: FakeNode) -> None:
    assert node.store.cursor_state() == stored(node) == CursorState(None, -1)


def test_progress__after_each_step__is_that_of_the_database(node: FakeNode) -> None:
    seen = []
    for blocks in ([[A]], [[], [], [B]], [[]]):
        node.chain.mine(*blocks)
        seen += [node.step(page_blocks=2), node.step(page_blocks=2)]
        assert comparable(node.store.cursor_state()) == comparable(stored(node))
    node.chain.fork(1, [A], [B])
    for _ in range(3):
        seen.append(node.step())
        assert comparable(node.store.cursor_state()) == comparable(stored(node))

    assert {type(result) for result in seen} == {Advanced, Idle, RolledBack}


def test_progress__retracted_as_a_whole__is_that_of_the_database(node: FakeNode) -> None:
    node.chain.mine([A])
    node.step()
    position = node.store.cursor_state().position
    assert position is not None

    node.store.retract_all(position)

    assert node.store.cursor_state().position is None


def test_step__new_block__neither_reads_the_cursor_nor_asks_more_than_three_times(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.mine([A])
    node.catch_up()
    node.chain.mine([B])
    asked: list[list[str]] = []
    answer = node.chain.make_batch_request

    def listen(requests: Any) -> Any:
        asked.append([method for method, _ in requests])
        return answer(requests)

    monkeypatch.setattr(node.chain, "make_batch_request", listen)
    monkeypatch.setattr(node.store, "reading", _unavailable)

    assert isinstance(node.step(), Advanced)
    assert asked == [
        ["eth_chainId", "eth_getBlockByNumber"],
        ["eth_getLogs", "eth_call"],
        ["eth_getBlockByNumber", "eth_getBlockReceipts"],
    ]


@pytest.mark.parametrize("serves_final_only", [False, True])
def test_step__nothing_to_do_and_database_gone__says_so(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, serves_final_only: bool
) -> None:
    node.serves_final_only = serves_final_only
    node.chain.mine([A], [B], [])
    node.catch_up()

    monkeypatch.setattr(node.store, "reading", _unavailable)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="got none"):
            node.step()

    monkeypatch.undo()
    assert isinstance(node.step(), Idle)


def test_step__cursor_moved_in_spite_of_the_lock__is_refused_once_then_read(
    node: FakeNode,
) -> None:
    node.chain.mine([A], [])
    node.catch_up()
    with closing(sqlite3.connect(node.path)) as connection, connection:
        connection.execute("UPDATE cursor SET block_number = block_number - 1")
        connection.execute(
            "UPDATE cursor SET block_hash = (SELECT hash FROM blocks WHERE number = block_number)"
        )
        connection.execute("DELETE FROM blocks WHERE number > (SELECT block_number FROM cursor)")
    node.chain.mine([B])

    with pytest.raises(StoreError, match="another process writes to it"):
        node.step()

    assert isinstance(node.step(), Advanced)
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2]


@contextmanager
def _unavailable() -> Iterator[Connection]:
    raise StoreUnavailable("database", "an answer", "none")
    yield
