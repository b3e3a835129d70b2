from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import rlp
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from chainkit.chain import Endpoint
from chainkit.errors import ChainError, InconsistentAnswer, MalformedData, RateLimited
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit_indexer.finality import NOTHING_FINAL
from chainkit_indexer.replay import keeper
from chainkit_indexer.replay.keeper import (
    BATCH_TRANSACTIONS,
    LONGEST_PAUSE_SECONDS,
    PAUSE_SECONDS,
    RawTransactionKeeper,
)
from chainkit_indexer.replay.rebuild import read_transaction, rebuild_transaction
from chainkit_indexer.storage import schema
from support.chains.fake_chain import FakeChain, Post
from support.chains.sealed import raw_transaction
from support.indexer.fake_node import FakeNode

SECRET = b"\x42" * 32
SENDER = Account.from_key(SECRET).address
TO = "0x" + "11" * 20
ACCESS = [{"address": "0x" + "22" * 20, "storageKeys": ["0x" + "33" * 32, "0x" + "00" * 32]}]
CALL = {"nonce": 7, "gas": 90_000, "to": TO, "value": 5, "data": b"\x01\x02"}
LEGACY = CALL | {"gasPrice": 10**9}
FEES = {"maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 0}
AUTHORIZATION = Account.sign_authorization(
    {"chainId": 31337, "address": "0x" + "44" * 20, "nonce": 0}, SECRET
)
KINDS: dict[str, dict[str, Any]] = {
    "before EIP-155": LEGACY,
    "legacy": LEGACY | {"chainId": 31337},
    "access list": LEGACY | {"chainId": 31337, "accessList": ACCESS, "type": 1},
    "fee market": CALL | FEES | {"chainId": 31337, "accessList": ACCESS, "type": 2},
    "set code": CALL
    | FEES
    | {"chainId": 31337, "accessList": [], "authorizationList": [AUTHORIZATION], "type": 4},
}


def signed(transaction: dict[str, Any]) -> Any:
    return Account.sign_transaction(transaction, SECRET)


def answered(transaction: dict[str, Any]) -> dict[str, Any]:
    """An endpoint's answer to eth_getTransactionByHash."""
    done = signed(transaction)
    fields = {
        name: hex(value) if isinstance(value, int) else value for name, value in transaction.items()
    }
    fields |= {"input": "0x" + fields.pop("data").hex(), "hash": "0x" + done.hash.hex()}
    fields |= {"r": hex(done.r), "s": hex(done.s), "v": hex(done.v)}
    if "type" in fields:
        fields |= {"yParity": hex(done.v)}
    if "authorizationList" in fields:
        fields["authorizationList"] = [
            {
                "chainId": hex(each.chain_id),
                "address": "0x" + each.address.hex(),
                "nonce": hex(each.nonce),
                "yParity": hex(each.y_parity),
                "r": hex(each.r),
                "s": hex(each.s),
            }
            for each in transaction["authorizationList"]
        ]
    return fields


@pytest.mark.parametrize("kind", KINDS)
def test_rebuild__fields_of_each_type__are_the_signed_bytes(kind: str) -> None:
    done = signed(KINDS[kind])

    assert rebuild_transaction(answered(KINDS[kind])) == bytes(done.raw_transaction)


def test_rebuild__parity_under_its_older_name__is_understood() -> None:
    fields = answered(KINDS["fee market"])
    del fields["yParity"]

    assert rebuild_transaction(fields) == bytes(signed(KINDS["fee market"]).raw_transaction)


def test_rebuild__deployment__has_no_address() -> None:
    transaction = KINDS["fee market"] | {"to": ""}
    fields = answered(transaction) | {"to": None}

    assert rebuild_transaction(fields) == bytes(signed(transaction).raw_transaction)


@pytest.mark.parametrize("kind", ["0x3", "0x7e"])
def test_rebuild__type_that_cannot_be_sent_again__is_nothing(kind: str) -> None:
    assert rebuild_transaction(answered(KINDS["fee market"]) | {"type": kind}) is None


@pytest.mark.parametrize("missing", ["nonce", "input", "r", "accessList", "maxFeePerGas"])
def test_rebuild__field_missing__is_an_error(missing: str) -> None:
    fields = answered(KINDS["fee market"])
    del fields[missing]

    with pytest.raises(KeyError, match=missing):
        rebuild_transaction(fields)


@pytest.mark.parametrize("kind", KINDS)
def test_read__each_type__says_what_it_asks_for(kind: str) -> None:
    done = signed(KINDS[kind])

    found = read_transaction(bytes(done.raw_transaction))

    assert (found.hash, found.sender) == (bytes(done.hash), SENDER)
    assert found.chain_id == KINDS[kind].get("chainId")
    assert (found.nonce, found.gas, found.value, found.calldata) == (7, 90_000, 5, b"\x01\x02")
    assert found.to == bytes.fromhex(TO[2:])
    assert found.fee_per_gas == KINDS[kind].get("maxFeePerGas", 10**9)
    assert found.highest_cost == 90_000 * found.fee_per_gas + 5


def test_read__deployment__has_no_address() -> None:
    raw = bytes(signed(KINDS["legacy"] | {"to": ""}).raw_transaction)

    assert read_transaction(raw).to is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x02",
        b"\xc0",
        b"\x03" + rlp.encode([b""] * 14),
        b"\x02" + rlp.encode([b""] * 12),
        bytes(signed(KINDS["legacy"]).raw_transaction)[:-1],
        bytes(signed(KINDS["fee market"]).raw_transaction) + b"\x00",
    ],
)
def test_read__no_transaction__is_an_error(raw: bytes) -> None:
    with pytest.raises(MalformedData, match="transaction: expected"):
        read_transaction(raw)


@given(st.binary(max_size=200))
def test_read__any_bytes__reads_or_refuses(raw: bytes) -> None:
    with suppress(MalformedData):
        assert read_transaction(raw).hash == keccak256(raw)


class RawChain(FakeChain):
    """Gives what was signed, except of some; counts requests, which may take long."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.seconds_per_request = 0.0
        self.requests: list[tuple[str, int]] = []
        self.missing: set[str] = set()
        self.refusal: dict[str, Any] | None = None
        self.is_without_raw = False

    def make_batch_request(self, requests: Any) -> Any:
        if "ByHash" not in requests[0][0]:
            return super().make_batch_request(requests)
        self.requests.append((requests[0][0], len(requests)))
        self.now += self.seconds_per_request
        if self.refusal is not None:
            return [{"id": number, "error": self.refusal} for number in range(len(requests))]
        return super().make_batch_request(requests)

    def _eth_getRawTransactionByHash(self, wanted: str) -> Any:  # noqa: N802
        if self.is_without_raw:
            raise LookupError("the method does not exist")
        for post in (post for block in self.blocks for post in block.posts):
            if "0x" + post.transaction_hash.hex() == wanted and post.name not in self.missing:
                return hex0x(raw_transaction(post.name))
        return None

    def _eth_getTransactionByHash(self, wanted: str) -> Any:  # noqa: N802
        return {"type": "0x7e"} if int(wanted, 16) % 2 else {"type": "0x0"}


class Keeping:
    """A keeper of a node of a chain with one post in each block, and what it reported."""

    def __init__(self, path: Path, posts: int) -> None:
        self.chain = RawChain()
        self.chain.mine(*[[Post(f"post {number}")] for number in range(posts)])
        self.node = FakeNode(self.chain, path)
        self.node.catch_up()
        self.reported: list[ChainError] = []
        self.keeper = RawTransactionKeeper(self.node.store, self.report, lambda: self.chain.now)

    def report(self, endpoint: Endpoint, error: ChainError) -> None:
        assert endpoint is self.chain.endpoint
        self.reported.append(error)

    def keep(self, after_seconds: float = 0, final_block: int = NOTHING_FINAL) -> int:
        self.chain.now += after_seconds
        return self.keeper.keep(self.chain.endpoint, final_block)

    def poll(self, seconds: float) -> int:
        """Call it four times a second; return how many requests that were."""
        before = len(self.chain.requests)
        end = self.chain.now + seconds
        while self.chain.now < end:
            self.keep(0.25)
        return len(self.chain.requests) - before


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    keeping = Keeping(tmp_path / "node.db", 2 * BATCH_TRANSACTIONS + 20)
    yield keeping
    keeping.node.store.close()


def test_keep__more_than_a_batch__goes_on_at_once_and_then_pauses(keeping: Keeping) -> None:
    assert [keeping.keep() for _ in range(5)] == [50, 50, 20, 0, 0]

    assert keeping.chain.requests == [("eth_getRawTransactionByHash", n) for n in (50, 50, 20)]
    keeping.chain.mine([Post("late")])
    keeping.node.catch_up()
    assert keeping.keep(PAUSE_SECONDS / 2) == 0
    assert keeping.keep(PAUSE_SECONDS / 2) == 1


def test_keep__newest_cannot_be_had__neither_floods_nor_crowds_out_the_others(
    keeping: Keeping,
) -> None:
    chain = keeping.chain
    chain.missing = {f"post {number}" for number in range(20, 120)}

    keeping.poll(8)
    assert len(keeping.node.rows(schema.raw_transactions)) == 20

    keeping.poll(2 * LONGEST_PAUSE_SECONDS)
    assert keeping.poll(LONGEST_PAUSE_SECONDS) <= 4
    chain.missing = set()
    keeping.poll(LONGEST_PAUSE_SECONDS)
    assert len(keeping.node.rows(schema.raw_transactions)) == 120
    assert keeping.reported == []


def test_keep__could_not_be_had_and_became_final__is_not_remembered(keeping: Keeping) -> None:
    keeping.chain.missing = {f"post {number}" for number in range(120)}
    keeping.poll(8)
    asked = len(keeping.chain.requests)

    keeping.keep(PAUSE_SECONDS, final_block=keeping.chain.head.number)
    keeping.chain.missing = set()

    assert keeping.keep(PAUSE_SECONDS) == 50
    assert len(keeping.chain.requests) == asked + 1


def test_keep__more_are_missing_than_can_be_remembered__goes_on_slowly(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "MOST_ABSENT", 60)
    keeping.chain.missing = {f"post {number}" for number in range(120)}

    assert 20 <= keeping.poll(60) <= 31


def test_keep__rate_limited__tells_the_pool_and_asks_ever_more_seldom(
    keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    keeping.chain.refusal = {"code": 429, "message": "rate limit"}

    keeping.keep()
    assert [type(error) for error in keeping.reported] == [RateLimited]
    assert keeping.poll(3 * LONGEST_PAUSE_SECONDS) <= 10
    assert keeping.poll(100 * LONGEST_PAUSE_SECONDS) <= 100
    assert len(caplog.records) == 1

    keeping.chain.refusal = None
    assert keeping.keep(LONGEST_PAUSE_SECONDS) == 50
    assert keeping.keep() == 50


def test_keep__slow_answers__take_a_tenth_of_the_time(keeping: Keeping) -> None:
    keeping.chain.seconds_per_request = 2

    assert keeping.keep() == 50
    assert keeping.keep(17) == 0
    assert keeping.keep(1) == 50


def test_keep__method_refused__asks_otherwise_from_the_next_call_on(keeping: Keeping) -> None:
    keeping.chain.is_without_raw = True

    assert [keeping.keep() for _ in range(3)] == [0, 0, 0]

    raw, fields = "eth_getRawTransactionByHash", "eth_getTransactionByHash"
    assert keeping.chain.requests == [(raw, 50), (fields, 50)]
    assert keeping.reported == []
    keeping.chain.is_without_raw = False
    keeping.poll(LONGEST_PAUSE_SECONDS)
    assert keeping.keep(2 * LONGEST_PAUSE_SECONDS) == 50


def test_keep__answer_that_is_another_transaction__does_not_hold_up_the_others(
    keeping: Keeping,
) -> None:
    keeping.chain.tamper = lambda method, params, result: "0x00" if "getRaw" in method else result

    keeping.keep()
    assert [type(error) for error in keeping.reported] == [InconsistentAnswer]

    keeping.poll(20)
    assert len(keeping.reported) == 1
    assert {method for method, _ in keeping.chain.requests[1:]} == {"eth_getTransactionByHash"}
