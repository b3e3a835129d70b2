from typing import Any

import pytest
import requests

from chainkit.contracts.counter import read_counter, read_own_counter
from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.contracts.followed import LAST_SELECTOR, SequenceCounter
from chainkit.errors import (
    AccessRefused,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
)
from chainkit.types import BlockReference
from support.endpoints.fake_endpoint import FakeProvider, FakeServer, RpcError

BLOCK = BlockReference(10, b"\x0b" * 32)
COUNTER = SequenceCounter(b"\xcc" * 20, b"\1\2\3\4", 7)
RECORD = DeploymentRecord(
    1,
    bytes(32),
    *(DeployedContract(name, name.encode() * 20, 7, bytes(32)) for name in "abcd"),
    deployer=bytes(20),
)

NO_STATE = [
    (-32000, "missing trie node 1a3bddc4 (path ) state 0x1a3bddc4 is not available"),
    (-32000, "missing trie node ef7df5d88cb1 (path ) <nil>"),
    (-32000, "historical state 5f1c0e is not available"),
    (-32000, "state histories haven't been fully indexed yet"),
    (-32000, "required historical state unavailable (reexec=128)"),
    (-32000, "old data not available due to pruning, history is available from block 15500000"),
    (-32000, "pruned history unavailable: requested 1, earliest available 2"),
    (-32000, "state at block #5 is pruned"),
    (-32000, "This request is not supported because your node is running with state pruning."),
    (-32000, "World state unavailable"),
    (-32002, "No state available for block 10 (0x0b0b)"),
    (-32000, "project ID does not have access to archive state"),
    (-32602, "Archive requests require a personal token. Get one at: https://example.test"),
    (-32602, "BlockOutOfRangeError: block height is 60 but requested was 5"),
]
UNKNOWN_BLOCK = [
    (-32000, "header not found"),
    (-32000, "header for hash not found"),
    (-32000, "unknown block"),
    (-32000, "hash is not currently canonical"),
    (-32602, "block not found"),
]


def answered(answer: Any) -> Any:
    return FakeProvider({"eth_call": answer}).endpoint()


def word(value: int) -> str:
    return f"0x{value:064x}"


@pytest.mark.parametrize("value", [0, 1, 2**64 - 1])
def test_read__number_of_a_contract__is_asked_for_by_hash(value: int) -> None:
    provider = FakeProvider({"eth_call": word(value)})

    assert read_counter(provider.endpoint(), COUNTER, BLOCK) == value
    [[(method, (call, block))]] = provider.requests
    assert (method, call) == ("eth_call", {"to": "0x" + "cc" * 20, "data": "0x01020304"})
    assert block == {"blockHash": "0x" + "0b" * 32, "requireCanonical": True}


def test_read__block_below_the_contract__is_0_and_asks_nobody() -> None:
    provider = FakeProvider({})

    assert read_counter(provider.endpoint(), COUNTER, BlockReference(6, BLOCK.hash)) == 0
    assert provider.requests == []


@pytest.mark.parametrize(("code", "message"), NO_STATE)
def test_read__endpoint_without_the_block_s_state__is_none(code: int, message: str) -> None:
    assert read_counter(answered(RpcError(code, message)), COUNTER, BLOCK) is None


@pytest.mark.parametrize(("code", "message"), UNKNOWN_BLOCK)
def test_read__endpoint_that_does_not_know_the_block__is_inconsistent(
    code: int, message: str
) -> None:
    with pytest.raises(InconsistentAnswer) as caught:
        read_counter(answered(RpcError(code, message)), COUNTER, BLOCK)

    assert str(caught.value) == (
        "counter at http://endpoint.test: expected its state at block 10 0x0b0b0b0b…, "
        f"got {message}"
    )


def test_read__contract_without_such_a_function__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match="execution reverted"):
        read_counter(answered(RpcError(3, "execution reverted")), COUNTER, BLOCK)


@pytest.mark.parametrize(
    "answer", ["0x", word(2**64), word(2**256 - 1), "0x01", word(1) + "00", "0x" + "00" * 64]
)
def test_read__answer_that_is_no_uint64__is_inconsistent(answer: str) -> None:
    with pytest.raises(InconsistentAnswer, match=rf"expected a uint64, got {answer} \(block 10"):
        read_counter(answered(answer), COUNTER, BLOCK)


def test_read__other_failures__pass_as_they_are() -> None:
    limited = FakeProvider({"eth_call": RpcError(-32005, "archive requests are limited")})
    refused = FakeServer((403, {}, b"forbidden")).endpoint()
    silent = FakeServer(*[requests.ConnectionError("archive")] * 4).endpoint()

    with pytest.raises(RateLimited):
        read_counter(limited.endpoint(), COUNTER, BLOCK)
    with pytest.raises(AccessRefused):
        read_counter(refused, COUNTER, BLOCK)
    with pytest.raises(EndpointUnavailable):
        read_counter(silent, COUNTER, BLOCK)


def test_read_own__number_of_the_shared_sequence__is_its_last() -> None:
    provider = FakeProvider({"eth_call": word(5)})

    assert read_own_counter(provider.endpoint(), RECORD, BLOCK) == 5
    [[(_, (call, _))]] = provider.requests
    assert call == {"to": "0x" + "64" * 20, "data": "0x" + LAST_SELECTOR.hex()}


def test_read_own__no_state__is_inconsistent() -> None:
    with pytest.raises(InconsistentAnswer, match=r"expected its state at block 10 .*, got none"):
        read_own_counter(answered(RpcError(*NO_STATE[0])), RECORD, BLOCK)
