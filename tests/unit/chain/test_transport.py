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
from chainkit.errors import ChainError, EndpointUnavailable, InconsistentAnswer, RangeRefused
from chainkit.types import BlockReference
from support.endpoints.endpoint_reads import (
    chain_id,
    error_of,
    headers,
    logs,
    logs_in_a_batch,
    logs_of_one_block,
)
from support.endpoints.fake_endpoint import NAME, FakeServer

CHAIN_ID = {"jsonrpc": "2.0", "id": 0, "result": "0x7a69"}
MIB = 2**20


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

    assert isinstance(error, kind)
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
    timeouts = Timeouts(connect=0.01, read=0.01)

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
    assert isinstance(error_of(logs, failure), EndpointUnavailable)


def test_send__any_request__waits_separately_for_connection_and_answer() -> None:
    asked: list[Any] = []

    class Server(FakeServer):
        def send(self, request: Any, *arguments: Any, **options: Any) -> requests.Response:
            asked.append((options["timeout"], options["stream"], request.headers["Content-Type"]))
            return super().send(request, *arguments, **options)

    server = Server((200, {}, CHAIN_ID))
    server.endpoint(timeouts=Timeouts(connect=3, read=7)).chain_id()

    assert asked == [((3, 7), True, "application/json")]


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


def test_send__second_request_of_a_session__has_a_body_of_its_own_and_all_that_the_first_had(
    monkeypatch: Any,
) -> None:
    asked: list[tuple[Any, dict[str, str], Any]] = []

    class Listener(FakeServer):
        def send(self, request: Any, *arguments: Any, **options: Any) -> requests.Response:
            asked.append((request.body, dict(request.headers), dict(options["proxies"])))
            return super().send(request, *arguments, **options)

    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", "http://first.example:3128")
    server = Listener((200, {}, CHAIN_ID), (200, {}, CHAIN_ID | {"result": "0x"}))
    endpoint = server.endpoint("http://someone:secret@node.example")

    endpoint.chain_id()
    # The environment is read once: to read it for each request took a third of the request.
    monkeypatch.setenv("HTTP_PROXY", "http://second.example:3128")
    endpoint.call(bytes(20), b"", BlockReference(7, bytes(32)))

    methods = [json.loads(body)["method"] for body, _, _ in asked]
    assert methods == ["eth_chainId", "eth_call"]
    for body, sent, proxies in asked:
        assert sent["Content-Length"] == str(len(body))
        assert sent["Content-Type"] == "application/json"
        assert sent["Authorization"] == "Basic c29tZW9uZTpzZWNyZXQ="
        assert proxies["http"] == "http://first.example:3128"
