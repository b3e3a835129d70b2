"""Blocks whose receipts are asked for one by one, where the endpoint offers none by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chainkit.chain import ANY_LOG, Endpoint, RetryPolicy
from chainkit.chain.block_proof import proved_logs, read_proved_block
from chainkit.errors import (
    ChainkitError,
    Disproved,
    InconsistentAnswer,
    MethodRefused,
    OversizedAnswer,
    RefusedRequest,
    Unprovable,
)
from chainkit.types import BlockHeader, Log
from support.chains.sealed import BareLog, BareTransaction, seal
from support.endpoints.fake_endpoint import FakeProvider, RpcError

ADDRESS = b"\xaa" * 20
BY_BLOCK, ONE = "eth_getBlockReceipts", "eth_getTransactionReceipt"
CHAIN_ID = 1337
BLOCKS = [
    seal(
        number,
        bytes(32),
        number,
        [BareTransaction(f"{number} {each}", (BareLog(ADDRESS, (), b"x"),)) for each in range(3)],
    )
    for number in range(4)
]
NOT_OFFERED = RpcError(-32601, f"the method {BY_BLOCK} does not exist/is not available")

Tamper = Callable[[dict[str, Any]], Any]


class WithoutBlockReceipts(FakeProvider):
    """Answers receipts by their transactions alone; ``tampers`` change those of some hashes."""

    def __init__(self, refusal: RpcError = NOT_OFFERED, most: int = 100) -> None:
        receipts = {each["transactionHash"]: each for block in BLOCKS for each in block.receipts}
        self.tampers: dict[str, Tamper] = {}
        self.most = most

        def receipt(transaction_hash: str) -> Any:
            tamper = self.tampers.get(transaction_hash, lambda told: told)
            return tamper(receipts[transaction_hash])

        super().__init__(
            {
                "eth_getBlockByNumber": lambda height, whole: self.block(int(height, 16), whole),
                BY_BLOCK: refusal,
                ONE: receipt,
            }
        )

    def block(self, number: int, is_whole: bool) -> dict[str, Any]:
        return BLOCKS[number].answer(is_whole)

    def make_batch_request(self, batch_requests: Any) -> Any:
        if len(batch_requests) > self.most:
            raise OversizedAnswer("answer", "one of bounded size", "more")
        return super().make_batch_request(batch_requests)

    def asked(self, method: str) -> int:
        return sum(call[0] == method for request in self.requests for call in request)


def endpoint_of(provider: FakeProvider) -> Endpoint:
    return Endpoint(provider, "an endpoint", RetryPolicy(attempts=1))


def headers_of(endpoint: Endpoint) -> Sequence[BlockHeader]:
    return [endpoint.header(number) for number in range(len(BLOCKS))]


def proved(endpoint: Endpoint) -> tuple[list[list[Log]], ChainkitError | None]:
    """The logs of each block that is proved, and the error that ended it."""
    found: list[list[Log]] = []
    try:
        for logs in proved_logs(endpoint, headers_of(endpoint), ANY_LOG, CHAIN_ID):
            found.append(logs)
    except ChainkitError as error:
        return found, error
    return found, None


def hash_in(number: int, index: int = 1) -> str:
    return str(BLOCKS[number].receipts[index]["transactionHash"])


@pytest.mark.parametrize(
    "refusal",
    [
        NOT_OFFERED,
        RpcError(-32601, "Method not found"),
        RpcError(-32004, "method not supported"),
        RpcError(-32004, f"Method {BY_BLOCK} is not supported"),
        RpcError(-32600, f"Unsupported method: {BY_BLOCK}"),
        RpcError(12, f"{BY_BLOCK} is not available on your plan"),
    ],
    ids=lambda refusal: f"{refusal.code} {refusal.message}",
)
def test_blocks__no_receipts_by_block__are_proved_by_each_receipt(refusal: RpcError) -> None:
    provider = WithoutBlockReceipts(refusal)
    endpoint = endpoint_of(provider)

    for _ in range(3):
        found, error = proved(endpoint)

        assert error is None
        assert [len(logs) for logs in found] == [3, 3, 3, 3]
    whole = read_proved_block(endpoint, headers_of(endpoint)[2], CHAIN_ID)
    assert len(whole.receipts) == 3
    # In vain once: with the first blocks.
    assert provider.asked(BY_BLOCK) == len(BLOCKS)


def test_blocks__receipts_by_block_offered_later__are_asked_for_again() -> None:
    provider = WithoutBlockReceipts()
    endpoint = endpoint_of(provider)
    proved(endpoint)
    provider.answers = {
        **provider.answers,
        BY_BLOCK: lambda height: list(BLOCKS[int(height, 16)].receipts),
        ONE: NOT_OFFERED,
    }

    assert isinstance(proved(endpoint)[1], MethodRefused)
    endpoint.block_receipts_from = 0.0

    assert proved(endpoint)[1] is None


def test_blocks__no_receipts_at_all__says_so() -> None:
    provider = WithoutBlockReceipts()
    provider.answers = {**provider.answers, ONE: RpcError(-32601, f"no such method {ONE}")}

    found, error = proved(endpoint_of(provider))

    assert (found, type(error)) == ([], MethodRefused)


@pytest.mark.parametrize(
    "refusal", [RpcError(-32000, "missing trie node"), RpcError(-32602, "invalid params")]
)
def test_blocks__receipts_by_block_refused_for_anything_else__is_the_error(
    refusal: RpcError,
) -> None:
    provider = WithoutBlockReceipts(refusal)

    found, error = proved(endpoint_of(provider))

    assert found == []
    assert isinstance(error, RefusedRequest)
    assert provider.asked(ONE) == 0


@pytest.mark.parametrize(
    ("tamper", "expected", "said"),
    [
        (lambda told: None, Unprovable, "receipts of block 2: expected 3 receipts, got null for 1"),
        (lambda told: told | {"status": None}, Unprovable, "(field status)"),
        (lambda told: {**told, "blockHash": "0x" + "77" * 32}, InconsistentAnswer, "same block"),
        (
            lambda told: told | {"cumulativeGasUsed": "0x1", "blockHash": None},
            Unprovable,
            "without blockHash",
        ),
        (lambda told: told | {"logs": []}, Disproved, "receipts of block 2"),
        (lambda told: "0x", InconsistentAnswer, "well-formed fields"),
    ],
    ids=["null", "no status", "another block", "assumed", "no logs", "no receipt"],
)
def test_blocks__one_receipt_differs__blocks_before_it_are_proved(
    tamper: Tamper, expected: type[ChainkitError], said: str
) -> None:
    provider = WithoutBlockReceipts()
    provider.tampers[hash_in(2)] = tamper

    found, error = proved(endpoint_of(provider))

    assert len(found) == 2
    assert type(error) is expected
    assert said in str(error)


def test_blocks__transaction_without_a_field__blocks_before_it_are_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = WithoutBlockReceipts()
    whole = provider.block

    def lacking(number: int, is_whole: bool) -> dict[str, Any]:
        answer = whole(number, is_whole)
        if is_whole and number == 1:
            first, *others = answer["transactions"]
            answer["transactions"] = [first | {"nonce": None}, *others]
        return answer

    monkeypatch.setattr(provider, "block", lacking)

    found, error = proved(endpoint_of(provider))

    assert len(found) == 1
    assert "transaction 0 of block 1: " in str(error)
    assert "(field nonce)" in str(error)


@pytest.mark.parametrize("most", [1, 5])
def test_blocks__single_receipts_too_large_together__are_asked_for_in_halves(most: int) -> None:
    provider = WithoutBlockReceipts()
    endpoint = endpoint_of(provider)
    headers = headers_of(endpoint)
    provider.most = most

    found = list(proved_logs(endpoint, headers, ANY_LOG, CHAIN_ID))

    assert [len(logs) for logs in found] == [3, 3, 3, 3]


def test_blocks__single_receipts_without_end__are_not_read_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit.chain.block_receipts.LONGEST_ANSWER_BYTES", 2**16)
    provider = WithoutBlockReceipts()
    data = "0x" + "00" * 2**16
    provider.tampers[hash_in(3)] = lambda told: told | {"logs": [{"data": data}]}

    found, error = proved(endpoint_of(provider))

    assert len(found) == 3
    assert type(error) is OversizedAnswer
