from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.chain.log_query import LogQuery
from chainkit.errors import (
    ChainError,
    EndpointUnavailable,
    InconsistentAnswer,
    OversizedAnswer,
    RangeRefused,
    RateLimited,
)
from support import vectors
from support.endpoints.fake_endpoint import AT_ONCE, NAME, FakeProvider, RpcError

CASES = vectors.load("range_refusals")
ADDRESS = b"\x11" * 20
KINDS: dict[str, type[ChainError]] = {
    "range": RangeRefused,
    "rate": RateLimited,
    "behind": InconsistentAnswer,
    "unknown": RangeRefused,
}
HEADER = ("eth_getBlockByNumber", ("0x8", False))


def provider_of(error: Any) -> FakeProvider:
    return FakeProvider({"eth_getLogs": error, "eth_getBlockByNumber": None})


def query(first: int, last: int) -> tuple[str, Any]:
    return "eth_getLogs", ({"fromBlock": hex(first), "toBlock": hex(last)},)


def refusal_of(case: dict[str, Any]) -> RpcError:
    return RpcError(case["code"], case["message"], case.get("data"))


def error_of(endpoint: Endpoint, first: int, last: int, batched: bool = False) -> ChainError:
    with pytest.raises(ChainError) as caught:
        if batched:
            endpoint.batch([HEADER, query(first, last)])
        else:
            endpoint.logs(first, last, [ADDRESS])
    return caught.value


@pytest.mark.parametrize("batched", [False, True], ids=["alone", "in a batch"])
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case['provider']}: {case['message'][:40]}"
)
def test_read_logs__refused_in_known_words__is_the_error_that_helps(
    case: dict[str, Any], batched: bool
) -> None:
    error = error_of(provider_of(refusal_of(case)).endpoint(), 1, 10**8, batched)

    assert type(error) is KINDS[case["kind"]]
    if isinstance(error, RangeRefused):
        assert error.suggested_blocks == case["suggested_blocks"]
        assert error.subject == f"logs of blocks 1 to 100000000 at {NAME}"
    if isinstance(error, RateLimited):
        assert error.retry_after == case.get("retry_after")


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] in ("range", "unknown")], ids=str
)
def test_read_logs__a_single_block_refused__is_no_answer_of_the_endpoint(
    case: dict[str, Any],
) -> None:
    error = error_of(provider_of(refusal_of(case)).endpoint(), 7, 7)

    assert type(error) is EndpointUnavailable
    assert error.subject == f"logs of blocks 7 to 7 at {NAME}"


@pytest.mark.parametrize(
    ("asked", "suggestion"), [(10_001, 10_000), (10_000, None), (100, None), (2, None)]
)
def test_read_logs__suggestion_of_what_was_asked_or_more__is_none(
    asked: int, suggestion: int | None
) -> None:
    refusal = RpcError(35, "ranges over 10000 blocks are not supported on free plan")

    error = error_of(provider_of(refusal).endpoint(), 1, asked)

    assert isinstance(error, RangeRefused)
    assert error.suggested_blocks == suggestion


def test_read_logs__range_refused__is_not_asked_for_again() -> None:
    provider = provider_of(RpcError(-32000, "block range too large"))

    error_of(provider.endpoint(), 1, 9)

    assert len(provider.requests) == 1


@pytest.mark.parametrize("message", ["too many requests", "header not found"])
def test_read_logs__limited_or_behind__is_asked_for_again(message: str) -> None:
    provider = provider_of(RpcError(-32000, message))

    error_of(provider.endpoint(), 1, 9)

    assert len(provider.requests) == AT_ONCE.attempts


def test_read_batch__one_call_limited_after_one_refused__is_a_rate_limit() -> None:
    provider = FakeProvider(
        {"eth_getLogs": RpcError(-32000, "block range"), "busy": RpcError(429, "later")}
    )

    with pytest.raises(RateLimited):
        provider.endpoint().batch([query(1, 9), ("busy", ())])


def test_read_batch__refused_as_a_whole__is_about_all_its_blocks() -> None:
    refused = {"id": None, "error": {"code": -32003, "message": "response too large"}}
    provider = FakeProvider({}, [refused] * 9)
    by_hash = [("eth_getLogs", ({"blockHash": "0x07"},))]

    with pytest.raises(RangeRefused, match=r"^logs of 12 blocks at "):
        provider.endpoint().batch([query(1, 10), *by_hash, *by_hash])
    with pytest.raises(EndpointUnavailable, match=r"^logs of block 0x07 at "):
        provider.endpoint().batch(by_hash)


def test_read_batch__without_logs_refused_as_a_whole__is_no_matter_of_a_range() -> None:
    refused = {"id": None, "error": {"code": -32603, "message": "response too large"}}

    with pytest.raises(OversizedAnswer):
        FakeProvider({}, [refused] * 4).endpoint().batch([HEADER, HEADER])


@pytest.mark.parametrize(
    "query", [{}, {"fromBlock": "0x1"}, {"fromBlock": "earliest", "toBlock": "latest"}], ids=str
)
def test_among__query_that_names_no_heights__is_of_several_blocks(query: dict[str, str]) -> None:
    found = LogQuery.among([("eth_getLogs", [query])])

    assert found is not None and found.blocks > 1
