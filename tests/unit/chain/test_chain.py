from typing import Any

import pytest
import requests

from chainkit.chain import BATCH_SIZE, Endpoint, RetryPolicy
from chainkit.errors import (
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    RefusedRequest,
)
from support.endpoints.fake_endpoint import AT_ONCE, NAME, FakeProvider, FakeServer, RpcError

CHAIN_ID = {"jsonrpc": "2.0", "id": 0, "result": "0x7a69"}
UNANSWERED = [
    requests.ConnectionError("[Errno 111] Connection refused"),
    requests.ConnectionError("Connection aborted."),
    requests.ConnectTimeout("no answer in 20 seconds"),
    requests.ReadTimeout("no answer in 20 seconds"),
    requests.exceptions.ChunkedEncodingError("cut"),
]


class WatchedPolicy(RetryPolicy):
    """Retries at once and keeps what each pause was asked for."""

    asked: list[tuple[int, float | None]]

    def pause(self, attempt: int, retry_after: float | None) -> float:
        self.asked.append((attempt, retry_after))
        return 0


def rpc_error(code: int, message: str = "refused", **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message, **fields}}


# ------------------------------------------------------------------ an endpoint


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("https://rpc.example", "https://rpc.example"),
        ("https://alice:hush@rpc.example:8443/v2/key?token=hush", "https://rpc.example:8443"),
        ("http://[::1]:8545/", "http://[::1]:8545"),
    ],
)
def test_connect__url__sends_nothing_and_is_named_by_its_host(url: str, name: str) -> None:
    endpoint = Endpoint.connect(url)

    assert endpoint.name == name
    assert repr(endpoint) == f"Endpoint({name})"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rpc.example",
        "wss://rpc.example",
        "file:///etc/passwd",
        "http://",
        "http://:8545",
        "http://[::1",
        "http://rpc.example:99999",
        "http://rpc.example:port",
    ],
)
def test_connect__no_http_url__is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^RPC endpoint: expected an http://"):
        Endpoint.connect(url)


# ------------------------------------------------------------------ retries


@pytest.mark.parametrize("failure", UNANSWERED, ids=repr)
@pytest.mark.parametrize("failures", [1, 3])
def test_request__no_answer_at_first__is_sent_again(failure: Exception, failures: int) -> None:
    provider = FakeProvider({"eth_chainId": "0x7a69"}, [failure] * failures)

    assert provider.endpoint().chain_id() == 31337
    assert len(provider.requests) == failures + 1


@pytest.mark.parametrize("failure", UNANSWERED, ids=repr)
def test_request__never_an_answer__gives_up_after_the_last_attempt(failure: Exception) -> None:
    provider = FakeProvider({}, [failure] * 9)

    with pytest.raises(EndpointUnavailable, match=f"^{NAME}: expected an answer, got "):
        provider.endpoint().chain_id()

    assert len(provider.requests) == AT_ONCE.attempts


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (UNANSWERED[0], "connection refused"),
        (UNANSWERED[1], "ConnectionError"),
        (UNANSWERED[2], "a time-out"),
        (UNANSWERED[3], "a time-out"),
        (requests.ConnectionError("Failed to resolve 'rpc.example'"), "no such host"),
    ],
    ids=repr,
)
def test_request__never_an_answer__says_why(failure: Exception, reason: str) -> None:
    with pytest.raises(EndpointUnavailable) as caught:
        FakeProvider({}, [failure] * 4).endpoint().chain_id()

    assert str(caught.value) == f"{NAME}: expected an answer, got {reason}"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_request__busy_server_at_first__is_sent_again(status: int) -> None:
    server = FakeServer((status, {}, b"busy"), (200, {}, CHAIN_ID))

    assert server.endpoint().chain_id() == 31337


@pytest.mark.parametrize("status", [500, 503])
def test_request__server_that_stays_broken__is_unavailable(status: int) -> None:
    server = FakeServer(*[(status, {}, b"broken")] * 9)

    with pytest.raises(EndpointUnavailable, match=f"expected an answer, got HTTP {status}"):
        server.endpoint().chain_id()

    assert len(server.responses) == 9 - AT_ONCE.attempts


@pytest.mark.parametrize(
    ("headers", "retry_after"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "\u0663"}, None),
        ({}, None),
    ],
    ids=["seconds", "date", "superscript", "Arabic digit", "no header"],
)
def test_request__rate_limit_that_stays__says_how_long_to_wait(
    headers: dict[str, str], retry_after: float | None
) -> None:
    server = FakeServer(*[(429, headers, b"")] * 9)
    policy = WatchedPolicy(attempts=3)
    object.__setattr__(policy, "asked", asked := [])

    with pytest.raises(RateLimited, match="HTTP 429") as caught:
        Endpoint(server.endpoint().transport, NAME, policy).chain_id()

    assert caught.value.retry_after == retry_after
    assert asked == [(0, retry_after), (1, retry_after)]


@pytest.mark.parametrize("code", [-32005, 429])
def test_request__rate_limit_by_json_rpc__is_sent_again(code: int) -> None:
    limited = rpc_error(code, "too many requests")

    assert FakeProvider({"eth_chainId": "0x1"}, [limited] * 3).endpoint().chain_id() == 1
    with pytest.raises(RateLimited, match="expected an answer, got too many requests"):
        FakeProvider({}, [limited] * 4).endpoint().chain_id()


def test_request__internal_error_at_first__is_sent_again() -> None:
    provider = FakeProvider({"eth_chainId": "0x1"}, [rpc_error(-32603, "internal error")])

    assert provider.endpoint().chain_id() == 1


def test_request__internal_error_that_stays__is_unavailable() -> None:
    provider = FakeProvider({}, [rpc_error(-32603, "internal error")] * 9)

    with pytest.raises(EndpointUnavailable) as caught:
        provider.endpoint().chain_id()

    assert str(caught.value) == (f"eth_chainId at {NAME}: expected a result, got internal error")


@pytest.mark.parametrize("status", [400, 401, 403])
def test_request__refused_by_http__is_not_sent_again(status: int) -> None:
    server = FakeServer(*[(status, {}, b"no")] * 9)

    with pytest.raises(RefusedRequest, match=f"expected HTTP 200, got HTTP {status}"):
        server.endpoint().chain_id()

    assert len(server.responses) == 8


@pytest.mark.parametrize("code", [3, -32600, -32601, -32602, -32000, -32003])
def test_request__refused_by_json_rpc__is_not_sent_again(code: int) -> None:
    provider = FakeProvider({"eth_call": RpcError(code, "execution reverted", "0x08c379a0")})

    with pytest.raises(RefusedRequest) as caught:
        provider.endpoint().request("eth_call", {})

    assert str(caught.value) == (f"eth_call at {NAME}: expected a result, got execution reverted")
    assert caught.value.data == "0x08c379a0"
    assert len(provider.requests) == 1


@pytest.mark.parametrize("attempt", range(12))
def test_pause__after_any_attempt__grows_with_jitter_up_to_the_longest(attempt: int) -> None:
    policy = RetryPolicy(first_pause_seconds=0.2, longest_pause_seconds=5.0)
    ceiling = min(0.2 * 2**attempt, 5.0)

    pauses = [policy.pause(attempt, None) for _ in range(50)]

    assert all(ceiling / 2 <= pause <= ceiling for pause in pauses)
    assert len(set(pauses)) > 1


@pytest.mark.parametrize(("retry_after", "pause"), [(0.0, 0.0), (2.0, 2.0), (3600.0, 5.0)])
def test_pause__endpoint_says_how_long__is_that_but_never_too_long(
    retry_after: float, pause: float
) -> None:
    assert RetryPolicy(longest_pause_seconds=5.0).pause(0, retry_after) == pause


# ------------------------------------------------------------------ answers


def test_request__null__is_none() -> None:
    assert FakeProvider({"eth_getTransactionReceipt": None}).endpoint().receipt(bytes(32)) is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff"])
def test_request__answer_that_is_no_json__is_inconsistent(body: bytes) -> None:
    server = FakeServer(*[(200, {}, body)] * 4)

    with pytest.raises(InconsistentAnswer, match=f"^answer at {NAME}: expected JSON, got "):
        server.endpoint().chain_id()


@pytest.mark.parametrize("body", [[], "text", 7, None, {}, {"id": 0}, [CHAIN_ID]], ids=repr)
def test_request__json_that_is_no_answer__is_inconsistent(body: Any) -> None:
    server = FakeServer(*[(200, {}, body)] * 4)

    with pytest.raises(InconsistentAnswer, match=f"^eth_chainId at {NAME}: expected "):
        server.endpoint().chain_id()


@pytest.mark.parametrize("value", [None, 31337, "", "0x", "chain", [], {}], ids=repr)
def test_read_chain_id__answer_of_another_type__is_inconsistent(value: Any) -> None:
    with pytest.raises(InconsistentAnswer, match="expected well-formed fields"):
        FakeProvider({"eth_chainId": value}).endpoint().chain_id()


# ------------------------------------------------------------------ batches


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(0, []), (1, [1]), (BATCH_SIZE, [100]), (BATCH_SIZE + 1, [100, 1]), (250, [100, 100, 50])],
)
def test_batch__any_number_of_calls__is_split_and_keeps_the_order(
    count: int, sizes: list[int]
) -> None:
    provider = FakeProvider({"echo": lambda number: number})

    results = provider.endpoint().batch([("echo", (number,)) for number in range(count)])

    assert results == list(range(count))
    assert [len(calls) for calls in provider.requests] == sizes


def test_batch__answers_in_another_order__are_put_in_the_order_of_the_calls() -> None:
    server = FakeServer(
        (
            200,
            {},
            lambda calls: [{"id": call["id"], "result": call["params"][0]} for call in calls[::-1]],
        )
    )

    assert server.endpoint().batch([("echo", (number,)) for number in range(5)]) == [0, 1, 2, 3, 4]


def test_batch__no_answer_at_first__is_sent_again_as_a_whole() -> None:
    provider = FakeProvider({"echo": lambda number: number}, [requests.ReadTimeout()])

    assert provider.endpoint().batch([("echo", (1,)), ("echo", (2,))]) == [1, 2]
    assert [len(calls) for calls in provider.requests] == [2, 2]


def test_batch__refused_as_a_whole__is_a_refused_request() -> None:
    provider = FakeProvider({}, [rpc_error(-32600, "batch limit exceeded")])

    with pytest.raises(RefusedRequest) as caught:
        provider.endpoint().batch([("echo", (1,)), ("echo", (2,))])

    assert str(caught.value) == (f"batch at {NAME}: expected a result, got batch limit exceeded")


def test_batch__rate_limited_as_a_whole__is_sent_again() -> None:
    provider = FakeProvider({"echo": lambda number: number}, [rpc_error(-32005)])

    assert provider.endpoint().batch([("echo", (1,))]) == [1]


def test_batch__a_call_rate_limited__is_a_rate_limit() -> None:
    provider = FakeProvider({"echo": 1, "busy": RpcError(-32005, "too many requests")})

    with pytest.raises(RateLimited, match="too many requests"):
        provider.endpoint().batch([("echo", ()), ("busy", ())])


def test_batch__a_call_refused__names_its_method() -> None:
    provider = FakeProvider({"echo": 1, "eth_call": RpcError(3, "execution reverted", "0xaa")})

    with pytest.raises(RefusedRequest, match=r"^eth_call at ") as caught:
        provider.endpoint().batch([("echo", ()), ("eth_call", ())])

    assert caught.value.data == "0xaa"


@pytest.mark.parametrize("answers", [0, 1, 3])
def test_batch__another_number_of_answers__is_inconsistent(answers: int) -> None:
    provider = FakeProvider({}, [[{"result": 1}] * answers] * AT_ONCE.attempts)

    with pytest.raises(InconsistentAnswer, match=f"expected 2 answers, got {answers}"):
        provider.endpoint().batch([("echo", (1,)), ("echo", (2,))])


def test_batch__one_result_for_all__is_inconsistent() -> None:
    provider = FakeProvider({}, [{"result": 1}] * AT_ONCE.attempts)

    with pytest.raises(InconsistentAnswer, match="expected 2 answers, got a single one"):
        provider.endpoint().batch([("echo", (1,)), ("echo", (2,))])


@pytest.mark.parametrize("answers", [["text"], [7], [None], [[]], [{"id": "x"}, {"id": 1}]])
def test_batch__answers_that_are_none__are_inconsistent(answers: list[Any]) -> None:
    server = FakeServer(*[(200, {}, answers)] * 4)

    with pytest.raises(InconsistentAnswer):
        server.endpoint().batch([("echo", (number,)) for number in range(len(answers))])


def test_batch__the_same_id_answered_twice__is_inconsistent() -> None:
    answers = [{"id": 0, "result": "first"}, {"id": 0, "result": "second"}]
    server = FakeServer(*[(200, {}, answers)] * 4)

    with pytest.raises(InconsistentAnswer):
        server.endpoint().batch([("echo", (1,)), ("echo", (2,))])
