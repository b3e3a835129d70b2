from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from sqlalchemy import insert

from chainkit.chain.transport import HttpFailure
from chainkit.errors import AccessRefused, InconsistentAnswer
from chainkit_indexer.replay.replay import Fate, Replayed, replay
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.store import Store
from support.chains.fake_chain import FakeChain, Post
from support.council.fake_registry import FakeRegistry
from support.endpoints.fake_endpoint import FakeProvider, RpcError
from support.indexer.fake_node import FakeNode

DROPPED = Post("dropped")
SENDER = Account.from_key(bytes(31) + b"\x07")


def signed(chain_id: int) -> bytes:
    fields = {"chainId": chain_id, "nonce": 0, "to": bytes(20), "value": 0, "data": b""}
    fees = {"gas": 21_000, "maxFeePerGas": 10, "maxPriorityFeePerGas": 1}
    return bytes(SENDER.sign_transaction(fields | fees).raw_transaction)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    chain = FakeChain()
    chain.mine([DROPPED])
    node = FakeNode(chain, tmp_path / "node.db")
    node.catch_up()
    chain.fork(1, [], [])
    node.catch_up()
    row = {
        "transaction_hash": DROPPED.transaction_hash,
        "block_number": 4,
        "transaction_index": 0,
        "raw": signed(node.store.identity.chain_id),
    }
    with node.store.writing() as connection:
        connection.execute(insert(schema.raw_transactions).values(row))
    yield node.store
    node.store.close()


def judged(store: Store, **answers: Any) -> Replayed:
    honest = {
        "eth_getTransactionReceipt": None,
        "eth_getTransactionByHash": None,
        "eth_getBlockByNumber": FakeRegistry().header,
        "eth_getTransactionCount": "0x0",
        "eth_getBalance": hex(10**18),
        "eth_feeHistory": {"baseFeePerGas": ["0x1"]},
        "eth_call": "0x",
    }
    [found] = replay(FakeProvider(honest | answers).endpoint(), store)
    return found


def closed_door(*_: Any) -> Any:
    raise HttpFailure(403, {}, b"")


def test_replay__nothing_against_it__would_be_sent(store: Store) -> None:
    assert judged(store).fate is Fate.WOULD_BE_SENT


@pytest.mark.parametrize(
    ("method", "answer", "why"),
    [
        ("eth_call", RpcError(3, "reverted", "0x"), "would revert: reverted"),
        ("eth_feeHistory", {"baseFeePerGas": ["0xb"]}, "the next block asks 11"),
        ("eth_getBalance", "0x1", "its sender has 1"),
    ],
)
def test_replay__what_the_chain_would_refuse__is_not_replayed(
    store: Store, method: str, answer: Any, why: str
) -> None:
    found = judged(store, **{method: answer})

    assert found.fate is Fate.NOT_REPLAYED
    assert why in found.why


def test_replay__chain_without_a_base_fee__would_be_sent(store: Store) -> None:
    assert judged(store, eth_feeHistory=RpcError(-32601)).fate is Fate.WOULD_BE_SENT


@pytest.mark.parametrize("method", ["eth_call", "eth_getBalance"])
def test_replay__endpoint_that_lets_nobody_in__says_nothing_of_the_transaction(
    store: Store, method: str
) -> None:
    with pytest.raises(AccessRefused):
        judged(store, **{method: closed_door})


@pytest.mark.parametrize("answer", [True, "0x", ["0x"], 7], ids=repr)
def test_replay__transaction_that_is_no_object__is_inconsistent(store: Store, answer: Any) -> None:
    with pytest.raises(InconsistentAnswer, match="transaction at"):
        judged(store, eth_getTransactionByHash=answer)
