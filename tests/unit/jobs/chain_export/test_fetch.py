"""Requests as large as an endpoint answers, the fall-back for receipts, and threads in order."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from chainkit.chain import BATCH_SIZE
from chainkit.chain.transport import AnswerTooLarge, HttpFailure
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
)
from chainkit_jobs.chain_export.batches import Batches
from chainkit_jobs.chain_export.fetch import BlockReader
from chainkit_jobs.chain_export.in_order import worked_in_order
from support.chains.answered_chain import AnsweredChain
from support.endpoints.fake_endpoint import FakeProvider, RpcError

NO_SUCH_METHOD = RpcError(-32601, "the method eth_getBlockReceipts does not exist/is not available")


class LimitedProvider(FakeProvider):
    """Refuses, in a way of its own, more than so many calls at once."""

    def __init__(self, limit: int, refuse: Callable[[], Any]) -> None:
        super().__init__({"echo": lambda value: value})
        self.limit = limit
        self.refuse = refuse

    def make_batch_request(self, batch_requests: Any) -> Any:
        if len(batch_requests) <= self.limit:
            return super().make_batch_request(batch_requests)
        self.requests.append(list(batch_requests))
        return self.refuse()


def raising(error: Exception) -> Callable[[], Any]:
    def refuse() -> Any:
        raise error

    return refuse


REFUSALS = {
    "too large": raising(AnswerTooLarge("more than 1 bytes")),
    "time-out": raising(requests.ReadTimeout()),
    "error object": lambda: {"error": {"code": -32600, "message": "too much at once"}},
    "status": raising(HttpFailure(413, {}, b"")),
}


def echoes(count: int) -> list[tuple[str, Sequence[Any]]]:
    return [("echo", (number,)) for number in range(count)]


@pytest.mark.parametrize("refuse", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("limit", [1, 7, 99])
def test_results__fewer_are_answered__all_in_order_and_the_size_is_remembered(
    limit: int, refuse: Callable[[], Any]
) -> None:
    provider = LimitedProvider(limit, refuse)
    batches, batch = Batches(), provider.endpoint().batch

    assert batches.results(batch, echoes(150)) == list(range(150))
    asked = len(provider.requests)
    batches.results(batch, echoes(BATCH_SIZE))

    assert len(provider.requests[asked]) <= limit


def test_results__nothing_refused__is_asked_in_whole_batches() -> None:
    provider = LimitedProvider(BATCH_SIZE, raising(AssertionError()))

    Batches().results(provider.endpoint().batch, echoes(250))

    assert [len(request) for request in provider.requests] == [100, 100, 50]


def test_results__many_answers_after_a_refusal__asks_for_more_again() -> None:
    provider = LimitedProvider(10, REFUSALS["too large"])
    batches, batch = Batches(), provider.endpoint().batch
    batches.results(batch, echoes(100))
    provider.limit = BATCH_SIZE

    for _ in range(200):
        batches.results(batch, echoes(1))
    batches.results(batch, echoes(BATCH_SIZE))

    assert len(provider.requests[-1]) == BATCH_SIZE


@pytest.mark.parametrize(
    ("refuse", "error"),
    [
        (REFUSALS["too large"], InconsistentAnswer),
        (REFUSALS["error object"], RefusedRequest),
        (REFUSALS["time-out"], EndpointUnavailable),
    ],
)
def test_results__a_single_call_is_refused__is_the_error(
    refuse: Callable[[], Any], error: type[ChainError]
) -> None:
    provider = LimitedProvider(0, refuse)

    with pytest.raises(error):
        Batches().results(provider.endpoint().batch, echoes(8))

    assert min(len(request) for request in provider.requests) == 1


@pytest.mark.parametrize(
    ("refuse", "error"),
    [
        (raising(HttpFailure(401, {}, b"")), AccessRefused),
        (raising(HttpFailure(429, {}, b"")), RateLimited),
        (raising(requests.ConnectionError("refused")), EndpointUnavailable),
        (lambda: {"error": {"code": -32601, "message": "Method not found"}}, RefusedRequest),
        (lambda: [{"result": 1}], InconsistentAnswer),
    ],
)
def test_results__fewer_calls_cannot_help__is_the_error_at_once(
    refuse: Callable[[], Any], error: type[ChainError]
) -> None:
    provider = LimitedProvider(0, refuse)
    batches, batch = Batches(), provider.endpoint().batch

    with pytest.raises(error):
        batches.results(batch, echoes(8))

    assert {len(request) for request in provider.requests} == {8}
    provider.limit = BATCH_SIZE
    batches.results(batch, echoes(BATCH_SIZE))
    assert len(provider.requests[-1]) == BATCH_SIZE


# --------------------------------------------------------------------- fall-back


POSTS = {4: 1, 5: 2, 7: 3}


def read(chain: AnsweredChain, *ranges: range) -> list[Any]:
    reader = BlockReader(chain.endpoint(), 1)
    return [block for numbers in ranges for block in reader.blocks(numbers)]


def asked(chain: AnsweredChain, method: str) -> int:
    return sum(call[0] == method for request in chain.requests for call in request)


@pytest.mark.parametrize(
    "refusal",
    [
        NO_SUCH_METHOD,
        RpcError(-32601, "Method not found"),
        RpcError(-32004, "Method not supported"),
        RpcError(-32600, "Unsupported method: eth_getBlockReceipts on this network"),
        RpcError(-32601, "Method 'eth_getBlockReceipts' is not supported."),
        RpcError(12, "eth_getBlockReceipts is not available on your plan"),
        RpcError(-32000, "rpc method is not whitelisted"),
        RpcError(-32601, "the method eth_getBlockReceipts doesn't exist"),
    ],
    ids=lambda refusal: refusal.message,
)
def test_blocks__no_block_receipts__asks_one_by_one_and_for_the_method_no_more(
    refusal: RpcError,
) -> None:
    without = AnsweredChain(POSTS, refused={"eth_getBlockReceipts": refusal})

    blocks = read(without, range(3, 6), range(6, 9))

    assert blocks == read(AnsweredChain(POSTS), range(3, 9))
    assert [len(block.receipts) for block in blocks] == [0, 1, 1, 0, 1, 0]
    assert asked(without, "eth_getTransactionReceipt") == 3
    # Tried again by the client itself where the code says that another time may be better.
    assert asked(without, "eth_getBlockReceipts") == 3 * (4 if refusal.code == 12 else 1)


def test_blocks__no_block_receipts_by_an_http_status__asks_one_by_one() -> None:
    body = b'{"error": {"code": -32601, "message": "the method does not exist/is not available"}}'
    without = AnsweredChain(POSTS)

    def refuse(*_: Any) -> Any:
        raise HttpFailure(400, {}, body)

    without.answers |= {"eth_getBlockReceipts": refuse}

    assert read(without, range(3, 6)) == read(AnsweredChain(POSTS), range(3, 6))


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (RpcError(-32000, "missing trie node"), RefusedRequest),
        (RpcError(-32602, "invalid params"), RefusedRequest),
        (RpcError(-32000, "eth_getBlockReceipts: block not found"), RefusedRequest),
        (RpcError(-32000, "method handler crashed"), RefusedRequest),
        (RpcError(-32005, "method not available: too many requests"), RateLimited),
        (RpcError(-32603, "internal error"), EndpointUnavailable),
    ],
)
def test_blocks__receipts_refused_for_anything_else__is_the_error(
    refusal: RpcError, error: type[ChainError]
) -> None:
    chain = AnsweredChain(POSTS, refused={"eth_getBlockReceipts": refusal})

    with pytest.raises(error):
        read(chain, range(3, 6))

    assert asked(chain, "eth_getTransactionReceipt") == 0


def test_blocks__one_receipt_of_several_is_missing__is_inconsistent() -> None:
    chain = AnsweredChain(POSTS, refused={"eth_getBlockReceipts": NO_SUCH_METHOD})
    chain.answers |= {"eth_getTransactionReceipt": None}

    with pytest.raises(InconsistentAnswer, match=r"block 4 at .* got nothing \(receipt 0\)"):
        read(chain, range(3, 6))


@pytest.mark.parametrize("method", ["eth_getBlockByNumber", "eth_getBlockReceipts"])
def test_blocks__nothing_for_a_block__is_inconsistent(method: str) -> None:
    chain = AnsweredChain(POSTS)
    chain.answers |= {method: None}

    with pytest.raises(InconsistentAnswer, match=r"block 3 at .*, got nothing"):
        read(chain, range(3, 6))


# ---------------------------------------------------------------------- in order


@given(count=st.integers(0, 40), threads=st.integers(1, 5))
def test_worked_in_order__any_number_of_tasks__all_results_in_order(
    count: int, threads: int
) -> None:
    assert list(worked_in_order(str, range(count), threads)) == [str(n) for n in range(count)]


def test_worked_in_order__later_tasks_end_first__are_handed_on_in_order() -> None:
    first_may_end = threading.Event()

    def work(task: int) -> int:
        if task == 3:
            first_may_end.set()
        if task == 0:
            assert first_may_end.wait(30)
        return task

    assert list(worked_in_order(work, range(9), 4)) == list(range(9))


def test_worked_in_order__slow_consumer__no_more_than_twice_the_threads_are_begun() -> None:
    begun: list[int] = []
    results = worked_in_order(begun.append, range(100), 3)

    next(results)

    assert len(begun) <= 6
    results.close()
    assert len(begun) <= 6


def test_worked_in_order__one_fails__earlier_ones_are_handed_on_and_no_more_begun() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in range(100):
            taken.append(task)
            yield task

    def work(task: int) -> int:
        if task == 5:
            raise EndpointUnavailable("endpoint", "an answer", "none")
        return task

    handed_on: list[int] = []
    with pytest.raises(EndpointUnavailable):
        for result in worked_in_order(work, tasks(), 2):
            handed_on.append(result)

    assert handed_on == [0, 1, 2, 3, 4]
    assert len(taken) <= 5 + 4
    assert not [t for t in threading.enumerate() if t.name.startswith("export")]
