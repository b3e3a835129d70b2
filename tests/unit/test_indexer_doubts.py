from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import InconsistentAnswer
from chainkit_indexer import schema
from chainkit_indexer.types import Advanced
from support.fake_chain import FIRST_BLOCK, FakeChain, Post, update
from support.fake_node import FakeNode

A, B, D = Post("a"), update("b"), Post("d")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    yield node
    node.store.close()


def _without(kind: str) -> Any:
    def tamper(method: str, params: Any, result: Any) -> Any:
        if method != "eth_getLogs":
            return result
        return {"all": [], "first": result[1:], "middle": [result[0], *result[2:]],
                "last": result[:-1]}[kind]  # fmt: skip

    return tamper


@pytest.mark.parametrize("kind", ["all", "first", "middle", "last"])
def test_step__logs_missing__never_commits(node: FakeNode, kind: str) -> None:
    node.chain.mine([A], [B], [D])
    before = node.content()
    node.chain.tamper = _without(kind)

    with pytest.raises(InconsistentAnswer):
        node.step()

    assert node.content() == before
    node.chain.tamper = lambda method, params, result: result
    node.catch_up()
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"blockHash": "0x" + "ee" * 32}, "block hash"),
        ({"removed": True}, "removed"),
        ({"blockNumber": "0x1"}, "a block from"),
        ({"address": "0x" + "09" * 20}, "a contract asked for"),
        ({"address": "0x" + "02" * 20}, "topic"),
        ({"data": "0x00"}, "bytes32"),
        ({"logIndex": hex(2**64)}, "31 bits"),
        ({"transactionIndex": hex(2**64)}, "31 bits"),
        ({"topics": []}, "topic"),
    ],
)
def test_step__log_that_does_not_hold__never_commits(
    node: FakeNode, change: dict[str, Any], message: str
) -> None:
    node.chain.mine([A], [B], [D])
    before = node.content()

    def tamper(method: str, params: Any, result: Any) -> Any:
        return [result[0] | change, *result[1:]] if method == "eth_getLogs" else result

    node.chain.tamper = tamper
    with pytest.raises(InconsistentAnswer, match=message):
        node.step()

    assert node.content() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parentHash": "0x" + "ee" * 32}, "parent"),
        ({"timestamp": hex(2**63)}, "a time up to"),
        ({"number": "0x1"}, "height"),
    ],
)
def test_step__header_that_does_not_hold__never_commits(
    node: FakeNode, change: dict[str, Any], message: str
) -> None:
    node.chain.mine([A], [B], [D])
    before = node.content()

    def tamper(method: str, params: Any, result: Any) -> Any:
        is_target = method == "eth_getBlockByNumber" and params[0] == hex(FIRST_BLOCK + 1)
        return result | change if is_target else result

    node.chain.tamper = tamper
    with pytest.raises(InconsistentAnswer, match=message):
        node.step()

    assert node.content() == before


def test_step__lagging_replica_without_the_blocks__never_commits(node: FakeNode) -> None:
    node.chain.mine([A], [B], [D])

    def tamper(method: str, params: Any, result: Any) -> Any:
        is_by_height = method == "eth_getBlockByNumber" and params[0] != "latest"
        return None if is_by_height and int(params[0], 16) > FIRST_BLOCK else result

    node.chain.tamper = tamper
    with pytest.raises(InconsistentAnswer, match="nothing"):
        node.step()


def test_step__fork_seen_by_one_replica_only__is_asked_again(node: FakeNode) -> None:
    node.chain.mine([A], [B])
    node.catch_up()
    before = node.content()
    node.chain.tamper = lambda method, params, result: (
        result | {"hash": "0x" + "ee" * 32} if params[:1] == ["latest"] else result
    )

    with pytest.raises(InconsistentAnswer, match="the same block twice"):
        node.step()

    assert node.content() == before


def test_step__pruned_node_in_deep_history__does_without_the_counter(node: FakeNode) -> None:
    node.chain.mine([A], *[[]] * 80)
    node.chain._eth_call = _refuse  # type: ignore[method-assign]

    assert isinstance(node.step(page_blocks=5), Advanced)
    with pytest.raises(InconsistentAnswer, match="header not found"):
        node.step(page_blocks=60)


def _refuse(call: Any, pinned: Any) -> Any:
    raise LookupError("header not found")


def test_step__shorter_fork_seen_by_one_replica_only__takes_nothing_back(node: FakeNode) -> None:
    node.chain.mine([A], [B])
    node.catch_up()
    before = node.content()
    other_head = {"number": hex(FIRST_BLOCK), "hash": "0x" + "ee" * 32}
    node.chain.tamper = lambda method, params, result: (
        result | other_head if params[:1] == ["latest"] else result
    )

    with pytest.raises(InconsistentAnswer, match="the same block twice"):
        node.step()

    assert node.content() == before
