import gzip
import io
import json
import threading
import tracemalloc
import zlib
from typing import Any

import pytest
import requests

from chainkit.chain import Endpoint, RetryPolicy, transport
from chainkit.chain.session import EndpointSession
from chainkit.chain.transport import HttpTransport, Timeouts
from chainkit.errors import (
    AccessRefused,
    ChainError,
    EndpointUnavailable,
    InconsistentAnswer,
    RangeRefused,
    RateLimited,
    RefusedRequest,
)
from support.fake_endpoint import NAME, FakeServer

ADDRESS = b"\x11" * 20
CHAIN_ID = {"jsonrpc": "2.0", "id": 0, "result": "0x7a69"}
MIB = 2**20


def error_of(read: Any, *responses: Any, **options: Any) -> ChainError:
    server = FakeServer(*[response for response in responses for _ in range(4)])
    with pytest.raises(ChainError) as caught:
        read(server.endpoint(**options))
    return caught.value


def chain_id(endpoint: Endpoint) -> Any:
    return endpoint.chain_id()


def headers(endpoint: Endpoint) -> Any:
    return endpoint.headers([1, 2])


def logs(endpoint: Endpoint) -> Any:
    return endpoint.logs(5, 8, [ADDRESS])


def logs_of_one_block(endpoint: Endpoint) -> Any:
    return endpoint.logs(5, 5, [ADDRESS])


def logs_in_a_batch(endpoint: Endpoint) -> Any:
    query = {"fromBlock": "0x5", "toBlock": "0x8"}
    return endpoint.batch([("eth_getBlockByNumber", ("0x8", False)), ("eth_getLogs", (query,))])


def logs_of_many_blocks_by_hash(endpoint: Endpoint) -> Any:
    return endpoint.batch([("eth_getLogs", ({"blockHash": hex(n)},)) for n in range(3)])


# ------------------------------------------------------------------ the bound


@pytest.mark.parametrize("spare", [0, 1])
def test_read__answer_of_just_the_bound__is_read(spare: int) -> None:
    body = json.dumps(CHAIN_ID).encode()
    server = FakeServer((200, {}, body))

    assert server.endpoint(longest_answer_bytes=len(body) + spare).chain_id() == 31337


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (chain_id, InconsistentAnswer),
        (headers, InconsistentAnswer),
        (logs, RangeRefused),
        (logs_in_a_batch, RangeRefused),
        (logs_of_many_blocks_by_hash, RangeRefused),
        (logs_of_one_block, InconsistentAnswer),
    ],
)
def test_read__answer_of_more_than_the_bound__is_refused(
    read: Any, kind: type[ChainError], announced: bool
) -> None:
    body = b" " * MIB
    sizes = {"Content-Length": str(len(body))} if announced else {}

    error = error_of(read, (200, sizes, body), longest_answer_bytes=MIB - 1)

    assert type(error) is kind
    assert f"{MIB if announced else MIB - 1} bytes" in str(error)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b" " * 40 * MIB, 9)),
        ("deflate", zlib.compress(b" " * 40 * MIB, 9)),
        ("gzip, gzip", gzip.compress(gzip.compress(b" " * 40 * MIB, 9))),
    ],
    ids=["gzip", "deflate", "gzip twice"],
)
def test_read__gigantic_when_decompressed__holds_no_more_than_the_bound(
    encoding: str, body: bytes
) -> None:
    tracemalloc.start()
    error = error_of(
        chain_id, (200, {"Content-Encoding": encoding}, body), longest_answer_bytes=4 * MIB
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert isinstance(error, InconsistentAnswer)
    assert peak < 12 * MIB


class Endless(io.RawIOBase):
    """A body that never ends; counts what was read of it."""

    read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.read_bytes += len(buffer)
        buffer[:] = b" " * len(buffer)
        return len(buffer)


def test_read__body_without_end__is_left_off_at_the_bound() -> None:
    source = Endless()
    body = io.BufferedReader(source, 8192)

    server = FakeServer((200, {}, body))
    endpoint = server.endpoint(longest_answer_bytes=MIB)
    with pytest.raises(RangeRefused):
        logs(endpoint)

    assert MIB < source.read_bytes <= MIB + 128 * 2**10


def test_count__bodies_received__as_decompressed() -> None:
    sizes: list[int] = []

    def answer(call: Any) -> bytes:
        body = json.dumps(CHAIN_ID | {"id": call["id"]}).encode()
        sizes.append(len(body))
        return gzip.compress(body)

    endpoint = FakeServer(*[(200, {"Content-Encoding": "gzip"}, answer)] * 2).endpoint()

    endpoint.chain_id()
    endpoint.chain_id()

    assert endpoint.traffic.requests == 2
    assert endpoint.traffic.bytes_received == sum(sizes)
    assert endpoint.traffic.seconds > 0


# ------------------------------------------------------------------ time


class Drip(io.BytesIO):
    """A body that comes byte by byte and never says that it is at its end."""

    def read1(self, size: int | None = -1) -> bytes:
        return b" "


def test_read__byte_now_and_then__times_out_as_a_whole() -> None:
    timeouts = Timeouts(read=0.01)

    server = FakeServer(*[(200, {}, Drip(b" ")) for _ in range(4)])
    with pytest.raises(EndpointUnavailable) as caught:
        server.endpoint(timeouts=timeouts).chain_id()

    assert caught.value.got == "a time-out"


class Broken(io.BytesIO):
    """A body whose connection ends with an error."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(b" ")
        self.failure = failure

    def read1(self, size: int | None = -1) -> bytes:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "read", "kind", "got"),
    [
        (TimeoutError(), chain_id, EndpointUnavailable, "a time-out"),
        (TimeoutError(), logs, RangeRefused, "a time-out"),
        (TimeoutError(), logs_in_a_batch, RangeRefused, "a time-out"),
        (TimeoutError(), logs_of_one_block, EndpointUnavailable, "a time-out"),
        (ConnectionResetError(), logs, EndpointUnavailable, "ChunkedEncodingError"),
    ],
)
def test_read__connection_lost_in_the_body__is_sorted_by_what_was_asked(
    failure: Exception, read: Any, kind: type[ChainError], got: str
) -> None:
    server = FakeServer(*[(200, {}, Broken(failure)) for _ in range(4)])

    with pytest.raises(kind) as caught:
        read(server.endpoint())

    assert caught.value.got == got


def test_read__less_than_announced__is_no_answer() -> None:
    error = error_of(chain_id, (200, {"Content-Length": "1000"}, json.dumps(CHAIN_ID).encode()))

    assert isinstance(error, EndpointUnavailable)


@pytest.mark.parametrize(
    "failure", [requests.ConnectTimeout(), requests.ConnectionError("refused")]
)
def test_read_logs__no_connection__is_no_matter_of_the_range(failure: Exception) -> None:
    assert type(error_of(logs, failure)) is EndpointUnavailable


def test_send__any_request__waits_separately_for_connection_and_answer() -> None:
    asked: list[Any] = []

    class Server(FakeServer):
        def send(self, request: Any, *arguments: Any, **options: Any) -> requests.Response:
            asked.append((options["timeout"], options["stream"], request.headers["Content-Type"]))
            return super().send(request, *arguments, **options)

    server = Server((200, {}, CHAIN_ID))
    server.endpoint(timeouts=Timeouts(connect=3, read=7)).chain_id()

    assert asked == [((3, 7), True, "application/json")]


# ------------------------------------------------------------------ malformed


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": 0, "result": "0x',
        b'{"id": 0, "result": NaN}',
        b'{"id": 0, "result": Infinity}',
        b'{"id": 0, "result": 1e999}',
        b"[" * 10_000,
        b"\xff\xfe{}",
        b'"\xed\xa0\x80"',
        b'{"id": 0, "result": 1}{"id": 0, "result": 1}',
        b"null",
        b"1e300",
    ],
    ids=repr,
)
@pytest.mark.parametrize("read", [chain_id, headers, logs, logs_in_a_batch])
def test_read__no_json_rpc__is_inconsistent(read: Any, body: bytes) -> None:
    assert type(error_of(read, (200, {}, body))) is InconsistentAnswer


def test_read__not_the_encoding_it_says__is_no_answer() -> None:
    error = error_of(chain_id, (200, {"Content-Encoding": "gzip"}, b"{}"))

    assert type(error) is EndpointUnavailable


@pytest.mark.parametrize("number", ["18446744073709551616", "1" * 300, "-1e308", "0.5", "true"])
def test_read__number_where_a_string_belongs__is_inconsistent(number: str) -> None:
    body = b'{"id": %d, "result": ' + number.encode() + b"}"
    server = FakeServer(*[(200, {}, lambda call: body % call["id"])] * 4)

    with pytest.raises(InconsistentAnswer, match="well-formed fields"):
        server.endpoint().chain_id()


@pytest.mark.parametrize("wrong", [1, -1, 10**6, "0", 0.5, 1e300, True, {}, None])
def test_read__result_for_another_id__is_inconsistent(wrong: Any) -> None:
    def answer(call: Any) -> bytes:
        shifted = call["id"] + wrong if type(wrong) is int else wrong
        return json.dumps({"id": shifted, "result": "0x1"}).encode()

    assert type(error_of(chain_id, (200, {}, answer))) is InconsistentAnswer


def test_read__result_without_an_id__is_inconsistent() -> None:
    assert type(error_of(chain_id, (200, {}, b'{"result": "0x1"}'))) is InconsistentAnswer


@pytest.mark.parametrize(
    "ids",
    [
        [0, 0],
        [1, 2],
        [0],
        [0, 1, 2],
        [0, None],
        [None, None],
        [0, "1"],
        [0, 1.0],
        [0, True],
        [[], {}],
    ],
    ids=repr,
)
def test_read_batch__ids_other_than_those_of_the_calls__is_inconsistent(ids: list[Any]) -> None:
    def answer(calls: Any) -> list[Any]:
        first = calls[0]["id"]
        return [{"id": first + i if type(i) is int else i, "result": None} for i in ids]

    assert type(error_of(headers, (200, {}, answer))) is InconsistentAnswer


def test_read_batch__one_refused_without_an_id__is_refused() -> None:
    def answer(calls: Any) -> list[Any]:
        refusal = {"id": None, "error": {"code": -32600, "message": "batch too long"}}
        return [{"id": calls[0]["id"], "result": None}, refusal]

    with pytest.raises(RefusedRequest, match="batch too long"):
        headers(FakeServer((200, {}, answer)).endpoint())


@pytest.mark.parametrize(
    "error",
    ["overloaded", [1], 7, True, {}, {"message": None}, {"code": "-32603"}, {"code": 1e300},
     {"code": -32000, "message": {"deep": [1]}, "data": {"x": 1e300}}],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("read", [chain_id, logs, logs_of_one_block])
def test_read__error_of_any_type__is_an_error_of_ours(read: Any, error: Any) -> None:
    kind = type(error_of(read, (200, {}, {"id": 0, "error": error})))

    assert kind in (EndpointUnavailable, RefusedRequest, RangeRefused)


def test_read__error_data_of_another_type__is_left_out() -> None:
    error = {"code": -32000, "message": "no", "data": {"reason": 7}}

    with pytest.raises(RefusedRequest) as caught:
        FakeServer((200, {}, {"id": 0, "error": error})).endpoint().chain_id()

    assert caught.value.data is None


def test_read__gigantic_error_message__is_shown_in_part() -> None:
    error = {"code": -32000, "message": "x" * MIB}

    with pytest.raises(RefusedRequest) as caught:
        FakeServer((200, {}, {"id": 0, "error": error})).endpoint().chain_id()

    assert len(str(caught.value)) < 500


# ------------------------------------------------------------------ HTTP


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_read__sent_elsewhere__is_no_answer_and_says_so(status: int) -> None:
    error = error_of(chain_id, (status, {"Location": "http://elsewhere.test/"}, b"x" * 100_000))

    assert type(error) is EndpointUnavailable
    assert error.got == f"HTTP {status}"


@pytest.mark.parametrize("status", [401, 402, 403, 407])
def test_read__not_let_in__is_for_a_person(status: int) -> None:
    assert type(error_of(chain_id, (status, {}, b""))) is AccessRefused


@pytest.mark.parametrize("status", [404, 405, 406, 409, 410, 411, 421, 425, 431, 451, 499])
@pytest.mark.parametrize("read", [chain_id, logs, logs_of_one_block])
def test_read__status_of_a_balancer_that_is_deployed__is_no_answer(read: Any, status: int) -> None:
    error = error_of(read, (status, {}, b"<html>no backend</html>"))

    assert type(error) is EndpointUnavailable
    assert error.got == f"HTTP {status}"


RANGE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "max block range 2"}}
LIMIT = {"id": None, "error": {"code": -32005, "message": "Too many requests, retry in 3 s"}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, RANGE, RangeRefused),
        (403, RANGE, RangeRefused),
        (413, RANGE, RangeRefused),
        (500, RANGE, RangeRefused),
        (400, [RANGE], RangeRefused),
        (400, b"range too large", RangeRefused),
        (400, b"", RangeRefused),
        (413, b"<html>413 Request Entity Too Large</html>", RangeRefused),
        (408, b"", RangeRefused),
        (504, b"<html>Gateway Time-out</html>", RangeRefused),
        (524, b"", RangeRefused),
        (400, LIMIT, RateLimited),
        (403, LIMIT, RateLimited),
        (503, LIMIT, RateLimited),
        (429, RANGE, RateLimited),
        (400, {"error": {"code": -32000, "message": "header not found"}}, InconsistentAnswer),
        (401, b"", AccessRefused),
        (403, b"<html>block range</html>", AccessRefused),
        (404, {"error": {"code": -32000, "message": "no such key"}}, EndpointUnavailable),
        (500, b"", EndpointUnavailable),
        (502, b"<html>range</html>", EndpointUnavailable),
        (503, {"error": "overloaded"}, EndpointUnavailable),
    ],
    ids=repr,
)
@pytest.mark.parametrize("read", [logs, logs_in_a_batch])
def test_read_logs__refused_by_http__is_sorted_by_status_and_words(
    read: Any, status: int, body: Any, kind: type[ChainError]
) -> None:
    assert type(error_of(read, (status, {}, body))) is kind


@pytest.mark.parametrize("status", [400, 413, 504])
def test_read_logs__of_one_block_refused_by_http__is_no_answer(status: int) -> None:
    assert type(error_of(logs_of_one_block, (status, {}, RANGE))) is EndpointUnavailable


def test_read__rate_limit_in_the_body_of_another_status__says_how_long_to_wait() -> None:
    for headers_, seconds in (({}, 3), ({"Retry-After": "9"}, 9)):
        error = error_of(chain_id, (503, headers_, LIMIT))

        assert isinstance(error, RateLimited)
        assert error.retry_after == seconds


# ------------------------------------------------------------------ sessions


def test_send__from_any_thread__opens_a_session_of_its_own(monkeypatch: Any) -> None:
    opened: list[int] = []

    class Session(EndpointSession):
        def __init__(self) -> None:
            super().__init__()
            opened.append(threading.get_ident())
            self.mount("http://", FakeServer(*[(200, {}, CHAIN_ID)] * 2))

    monkeypatch.setattr(transport, "EndpointSession", Session)
    endpoint = Endpoint(HttpTransport(NAME), NAME, RetryPolicy(attempts=1))

    def work() -> None:
        endpoint.chain_id()
        endpoint.chain_id()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()

    assert len(set(opened)) == len(opened) == 2
