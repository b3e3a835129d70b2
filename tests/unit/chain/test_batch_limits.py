"""Limits of batches, as execution clients and providers word them."""

import json
from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.errors import OversizedAnswer, RangeRefused
from support import vectors
from support.endpoints.fake_endpoint import FakeProvider, FakeServer, RpcError
from support.project import ROOT

CASES = vectors.load("batch_limits")
OF_CALLS = [case for case in CASES if case["kind"] == "calls"]
OF_BYTES = [case for case in CASES if case["kind"] == "bytes"]
CALLS = [("eth_getBlockByNumber", (hex(number), False)) for number in range(4)]
LOGS = ("eth_getLogs", ({"fromBlock": "0x1", "toBlock": "0x9"},))


def name_of(case: dict[str, Any]) -> str:
    return f"{case['who']}: {case['message'][:40]}"


def results(calls: Any) -> Any:
    def of(call: Any) -> Any:
        return {"jsonrpc": "2.0", "id": call["id"], "result": call["params"][0]}

    return of(calls) if isinstance(calls, dict) else [of(call) for call in calls]


def refusal(case: dict[str, Any], calls: Any) -> Any:
    error = {key: case[key] for key in ("code", "message", "data") if case[key] is not None}
    if case["shape"] == "page":
        return case["message"].encode()
    if case["shape"] == "all":
        return {"jsonrpc": "2.0", "id": None, "error": error}
    refused = [{"jsonrpc": "2.0", "id": call["id"], "error": error} for call in calls]
    return refused[:1] if case["shape"] == "first" else results(calls[:1]) + refused[1:]


class Limited(FakeServer):
    """Answers batches of at most two calls, or none at all, and every single call."""

    def __init__(self, case: dict[str, Any], most: int) -> None:
        super().__init__()
        self.case, self.most = case, most
        self.sizes: list[int] = []

    def send(self, request: Any, *arguments: Any, **options: Any) -> Any:
        calls = json.loads(request.body)
        size = len(calls) if isinstance(calls, list) else 0
        self.sizes.append(size)
        is_refused = size > self.most
        status = self.case["status"] if is_refused else 200
        body = refusal(self.case, calls) if is_refused else results(calls)
        self.responses = [(status, {}, body)]
        return super().send(request, *arguments, **options)


@pytest.mark.parametrize("case", OF_CALLS, ids=name_of)
@pytest.mark.parametrize(
    ("most", "sizes"), [(2, [4, 2, 2, 2, 2]), (0, [4, 2] + 8 * [0])], ids=["two", "none"]
)
def test_batch__more_calls_than_are_taken__is_sent_in_halves_from_then_on(
    case: dict[str, Any], most: int, sizes: list[int]
) -> None:
    server = Limited(case, most)
    endpoint = server.endpoint()

    answers = [endpoint.batch(CALLS), endpoint.batch(CALLS)]

    assert answers == [["0x0", "0x1", "0x2", "0x3"]] * 2
    assert server.sizes == sizes


@pytest.mark.parametrize("case", OF_BYTES, ids=name_of)
def test_batch__answers_of_too_many_bytes__is_oversized_and_not_sent_again(
    case: dict[str, Any],
) -> None:
    server = Limited(case, most=2)

    with pytest.raises(OversizedAnswer):
        server.endpoint().batch(CALLS)

    assert server.sizes == [4]


@pytest.mark.parametrize("case", OF_BYTES, ids=name_of)
def test_batch__logs_among_answers_of_too_many_bytes__is_a_refused_range(
    case: dict[str, Any],
) -> None:
    with pytest.raises(RangeRefused):
        Limited(case, most=1).endpoint().batch([CALLS[0], LOGS])
    with pytest.raises(RangeRefused):
        Limited(case, most=1).endpoint().batch([LOGS, CALLS[0]])


@pytest.mark.parametrize("case", OF_BYTES, ids=name_of)
def test_request__answer_of_too_many_bytes__is_oversized(case: dict[str, Any]) -> None:
    error = RpcError(case["code"], case["message"], case["data"])
    endpoint: Endpoint = FakeProvider({"eth_getBlockReceipts": error}).endpoint()

    with pytest.raises(OversizedAnswer):
        endpoint.request("eth_getBlockReceipts", "0x1")


def test_limits__of_the_table__are_in_the_guide() -> None:
    guide = (ROOT / "docs/endpoints.md").read_text()

    assert [case for case in CASES if f"| {case['who']} | {case['limit']} |" not in guide] == []
