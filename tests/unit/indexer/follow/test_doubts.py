from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from chainkit.chain.transport import HttpFailure
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import InconsistentAnswer, RefusedRequest
from chainkit_indexer.finality import FinalityPolicy
from chainkit_indexer.storage import schema
from chainkit_indexer.types import Advanced, RolledBack
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, update
from support.chains.sealed import resealed
from support.indexer.fake_node import FakeNode

A, B, D = Post("a"), update("b"), Post("d")
TWICE = Post("twice", times=2)


@pytest.fixture(params=[16, 0], ids=["by hash", "by range"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeNode]:
    node = FakeNode(FakeChain(), tmp_path / "node.db", recent_blocks=request.param)
    yield node
    node.store.close()


def _without(kind: str) -> Any:
    def tamper(method: str, params: Any, result: Any) -> Any:
        if method != "eth_getLogs":
            return result
        return {"all": [], "first": result[1:], "middle": [result[0], *result[2:]],
                "last": result[:-1]}[kind]  # fmt: skip

    return tamper


@pytest.mark.conforms("2.1-2")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("all", "got up to 0"),
        ("first", "expected sequence 1"),
        ("middle", "expected sequence 2"),
        ("last", "got up to 2"),
    ],
)
def test_step__logs_missing__never_commits(node: FakeNode, kind: str, message: str) -> None:
    node.chain.mine([A, B, D])
    node.chain.tamper = _without(kind)

    with node.refusing(InconsistentAnswer, message):
        node.step()
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
        ({"address": "0x" + "02" * 20}, "bloom filter of block 3"),
        ({"topics": ["0x" + "ee" * 32]}, "topic"),
        ({"data": "0x00"}, "bytes32"),
        ({"logIndex": hex(2**64)}, "31 bits"),
        ({"transactionIndex": hex(2**64)}, "31 bits"),
        ({"transactionHash": "0x" + "ee" * 32}, "one transaction at a place"),
        ({"topics": []}, "topic"),
    ],
)
def test_step__log_that_does_not_hold__never_commits(
    node: FakeNode, change: dict[str, Any], message: str
) -> None:
    node.chain.mine([TWICE], [B], [D])

    def tamper(method: str, params: Any, result: Any) -> Any:
        return [result[0] | change, *result[1:]] if method == "eth_getLogs" else result

    node.chain.tamper = tamper
    with node.refusing(InconsistentAnswer, message):
        node.step()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parentHash": "0x" + "ee" * 32}, "parent"),
        ({"timestamp": hex(2**63)}, "a time up to"),
        ({"number": "0x1"}, "height"),
        ({"timestamp": "0x1"}, "time of block 4"),
    ],
)
def test_step__header_that_does_not_hold__never_commits(
    node: FakeNode, change: dict[str, Any], message: str
) -> None:
    node.chain.mine([A], [B], [D])

    def tamper(method: str, params: Any, result: Any) -> Any:
        is_target = method == "eth_getBlockByNumber" and params[0] == hex(FIRST_BLOCK + 1)
        # Its hash is that of its fields: such a header is a liar's, but not disproved.
        return resealed(result, **change) if is_target else result

    node.chain.tamper = tamper
    with node.refusing(InconsistentAnswer, message):
        node.step()


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
    node.chain.tamper = lambda method, params, result: (
        resealed(result, extraData="0xee") if params[:1] == ["latest"] else result
    )

    with node.refusing(InconsistentAnswer, "the same block twice"):
        node.step()


@pytest.mark.parametrize("blocks_above", [3, 100], ids=["near the head", "in deep history"])
def test_step__logs_cut_and_counter_refused__never_commits(
    node: FakeNode, tmp_path: Path, blocks_above: int
) -> None:
    node.chain.mine([A], [B], *[[]] * blocks_above, [D])
    # So answers a replica that has not yet seen the blocks: no logs, and no state to ask.
    node.chain.tamper = lambda method, params, result: (
        result[:-1] if method == "eth_getLogs" else result
    )
    honest_call, node.chain._eth_call = node.chain._eth_call, _refuse  # type: ignore[method-assign]

    with node.refusing(InconsistentAnswer, r"its state at block 4 .*header not found"):
        node.step(page_blocks=2)
    node.chain.tamper = lambda method, params, result: result
    node.chain._eth_call = honest_call  # type: ignore[method-assign]
    node.catch_up(page_blocks=2)
    clean = FakeNode(node.chain, tmp_path / "clean.db")
    clean.catch_up(page_blocks=2)
    assert node.content() == clean.content()
    assert len(node.rows(schema.envelopes)) == 3
    clean.store.close()


def test_step__endpoint_without_any_state__never_commits(node: FakeNode) -> None:
    node.chain.mine([A], *[[]] * 80)
    node.chain._eth_call = _refuse  # type: ignore[method-assign]

    with node.refusing(InconsistentAnswer, "counter at fake chain: expected its state"):
        node.step(page_blocks=5)


def _refuse(call: Any, pinned: Any) -> Any:
    raise LookupError("header not found")


def test_step__counter_refused_by_http__is_not_asked_again(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.chain.mine([A])

    def refuse(call: Any, pinned: Any) -> Any:
        raise HttpFailure(403, {}, b"")

    monkeypatch.setattr(node.chain, "_eth_call", refuse)
    with node.refusing(RefusedRequest, "expected HTTP 200, got HTTP 403"):
        node.step()


def test_step__blocks_below_the_counters_own__are_followed_without_it(node: FakeNode) -> None:
    _deploy_counter_at(node.chain, FIRST_BLOCK + 2)
    node.chain.mine([], [], [A])

    assert isinstance(node.step(page_blocks=2), Advanced)
    assert isinstance(node.step(page_blocks=2), Advanced)
    assert [row[1] for row in node.rows(schema.envelopes)] == [1]


def test_step__no_counter_where_there_must_be_one__never_commits(node: FakeNode) -> None:
    node.chain.mine([A], [B], [D])

    def tamper(method: str, params: Any, result: Any) -> Any:
        return {"eth_getLogs": [], "eth_call": "0x"}.get(method, result)

    node.chain.tamper = tamper
    with node.refusing(InconsistentAnswer, "expected a uint64, got 0x "):
        node.step()


def _deploy_counter_at(chain: FakeChain, block: int) -> None:
    sequence = replace(chain.record.originator_sequence, block=block)
    chain.record = replace(chain.record, originator_sequence=sequence)
    chain.deployment = FollowedDeployment.of(chain.record)


def test_step__first_page_read_from_two_replicas__never_commits(node: FakeNode) -> None:
    node.chain.mine([A], [B])
    reads = count()

    def tamper(method: str, params: Any, result: Any) -> Any:
        if method != "eth_getBlockByNumber" or params[0] != hex(FIRST_BLOCK - 1):
            return result
        return resealed(result, extraData="0xee") if next(reads) == 0 else result

    node.chain.tamper = tamper
    with node.refusing(InconsistentAnswer, "the same block twice"):
        node.step()


def test_step__shorter_fork_seen_by_one_replica_only__takes_nothing_back(node: FakeNode) -> None:
    node.chain.mine([A], [B])
    node.catch_up()
    node.chain.tamper = lambda method, params, result: (
        resealed(result, number=hex(FIRST_BLOCK)) if params[:1] == ["latest"] else result
    )

    with node.refusing(InconsistentAnswer, "the same block twice"):
        node.step()


def test_step__first_start_at_a_head_of_another_replica__is_asked_again(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    node.chain.tamper = lambda method, params, result: (
        resealed(result, extraData="0xee") if params[:1] == ["latest"] else result
    )

    with pytest.raises(InconsistentAnswer, match="the same block twice"):
        node.step()


def test_step__no_state_of_a_recent_block__never_commits(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    node.chain.mine([A, D])

    def refuse(call: Any, pinned: Any) -> Any:
        raise LookupError("missing trie node")

    node.chain._eth_call = refuse  # type: ignore[method-assign]
    with node.refusing(InconsistentAnswer, "the state of the recent block 3"):
        node.step()


def test_step__last_log_of_a_block_held_back_where_no_counter_tells__never_commits(
    tmp_path: Path,
) -> None:
    chain = FakeChain()
    chain.deployment = replace(chain.deployment, counters={0: None})
    node = FakeNode(chain, tmp_path / "node.db", recent_blocks=0)
    chain.mine([A], [TWICE])

    def tamper(method: str, params: Any, result: Any) -> Any:
        is_filtered = method == "eth_getLogs" and "address" in params[0]
        return result[:-1] if is_filtered else result

    chain.tamper = tamper
    with pytest.raises(InconsistentAnswer, match="the same logs twice"):
        node.step()

    chain.tamper = lambda method, params, result: result
    node.catch_up()
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2, 3]


def test_step__tag_of_another_branch__makes_nothing_final(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    node.finality = FinalityPolicy.parse("finalized")
    node.chain.mine([A], [B], [D])
    node.chain.tags = {"finalized": 4}
    node.chain.tamper = lambda method, params, result: (
        resealed(result, extraData="0xee") if params[:1] == ["finalized"] else result
    )

    with pytest.raises(InconsistentAnswer, match="finalized block"):
        node.step()

    node.chain.tamper = lambda method, params, result: result
    node.catch_up()
    assert node.store.final_block() == 4


def test_step__fork_below_the_first_block_while_nothing_is_final__begins_anew(
    tmp_path: Path,
) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db", window_blocks=1000)
    node.chain.mine([A], [B])
    node.catch_up()
    node.chain.fork(3, [], [D], [A], [])

    result = node.step()

    assert isinstance(result, RolledBack)
    assert result.retracted == 2
    node.catch_up()
    assert [row[1] for row in node.rows(schema.envelopes)] == [1, 2]
    assert [row[-2:] for row in node.journal()] == [("moved", 2), ("dropped", None)]
