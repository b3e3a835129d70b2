import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.chain.transport import HttpTransport, Timeouts
from chainkit.errors import EndpointUnavailable, RangeRefused

TIMEOUTS = Timeouts(connect=0.5, read=0.2)
PATIENT = Timeouts(connect=5, read=20)
SECONDS_BETWEEN_PIECES = 0.05
LONGEST_SECONDS = 60.0
Talk = Callable[[socket.socket, bytes], None]


@contextmanager
def server(talk: Talk) -> Iterator[tuple[str, list[bytes]]]:
    """Answers each request of each connection by a function; yields its URL and the requests."""
    requests: list[bytes] = []
    connections: list[socket.socket] = []

    def converse(connection: socket.socket) -> None:
        try:
            while request := connection.recv(2**16):
                while not request.endswith(b"}"):
                    request += connection.recv(2**16)
                requests.append(request)
                talk(connection, request)
        except OSError:
            pass  # The client has gone.

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in connections:
        connection.close()


def connect(url: str, timeouts: Timeouts = TIMEOUTS) -> Endpoint:
    return Endpoint(HttpTransport(url, timeouts), "endpoint", RetryPolicy(attempts=1))


def answer(request: bytes, *headers: str, status: int = 200) -> bytes:
    call = json.loads(request.partition(b"\r\n\r\n")[2])
    body = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": "0x1"})
    lines = [f"HTTP/1.1 {status} {http.client.responses[status]}", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode()


def dripped(head: bytes, piece: bytes) -> Talk:
    def talk(connection: socket.socket, request: bytes) -> None:
        connection.sendall(head)
        end = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < end:
            connection.sendall(piece)
            time.sleep(SECONDS_BETWEEN_PIECES)

    return talk


SLOW = {
    "status": dripped(b"HTTP/1.1 200 ", b"a"),
    "header": dripped(b"HTTP/1.1 200 OK\r\nX: ", b"a"),
    "interim answers": dripped(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": dripped(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "chunks": dripped(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "size of a chunk": dripped(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "trailers": dripped(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("talk", SLOW.values(), ids=SLOW.keys())
def test_read__piece_now_and_then__ends_with_the_exchange(talk: Talk) -> None:
    with server(talk) as (url, _):
        with pytest.raises(EndpointUnavailable) as caught:
            connect(url).chain_id()

        assert caught.value.got == "a time-out"
        with pytest.raises(RangeRefused):
            connect(url).logs(1, 9, [b"\x11" * 20])


@pytest.mark.parametrize("status", [404, 503])
def test_read__refusal_that_does_not_end__is_that_refusal(status: int) -> None:
    head = f"HTTP/1.1 {status} No\r\nContent-Length: 60000\r\n\r\n".encode()

    with server(dripped(head, b" ")) as (url, _), pytest.raises(EndpointUnavailable) as caught:
        connect(url).chain_id()

    assert caught.value.got == f"HTTP {status}"


@pytest.mark.parametrize(
    "piece", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"]
)
def test_read__interim_answers_without_end__are_left_off_at_the_bound(piece: bytes) -> None:
    sent: list[int] = []

    def flood(connection: socket.socket, request: bytes) -> None:
        for _ in range(10_000):
            connection.sendall(piece * 200)
            sent.append(200 * len(piece))

    with server(flood) as (url, _), pytest.raises(EndpointUnavailable):
        connect(url, PATIENT).chain_id()

    assert sum(sent) < 20 * 2**20


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_read__redirect_with_a_body_without_end__reads_little_of_it(status: int) -> None:
    sent: list[int] = []

    def redirect(connection: socket.socket, request: bytes) -> None:
        connection.sendall(
            f"HTTP/1.1 {status} Go\r\nLocation: http://127.0.0.1:1/\r\n\r\n".encode()
        )
        for _ in range(200):
            connection.sendall(b" " * 2**20)
            sent.append(2**20)

    with server(redirect) as (url, _), pytest.raises(EndpointUnavailable) as caught:
        connect(url, PATIENT).chain_id()

    assert caught.value.got == f"HTTP {status}"
    assert sum(sent) < 20 * 2**20


def test_read__cookies_with_each_answer__keeps_and_sends_none() -> None:
    numbers = itertools.count()

    def talk(connection: socket.socket, request: bytes) -> None:
        cookies = [f"Set-Cookie: c{next(numbers)}={'x' * 1000}" for _ in range(50)]
        connection.sendall(answer(request, *cookies))

    with server(talk) as (url, requests):
        endpoint = connect(url, PATIENT)
        assert [endpoint.chain_id() for _ in range(3)] == [1, 1, 1]

        assert len(requests) == 3
        assert b"cookie" not in b"".join(requests).lower()


def test_read__many_answers__come_by_one_connection() -> None:
    ports: list[int] = []

    def talk(connection: socket.socket, request: bytes) -> None:
        ports.append(connection.getpeername()[1])
        connection.sendall(answer(request))

    with server(talk) as (url, _):
        endpoint = connect(url, PATIENT)
        assert [endpoint.chain_id() for _ in range(5)] == [1] * 5

    assert len(ports) == 5
    assert len(set(ports)) == 1


def test_read__exchange_that_was_slow_before__has_its_whole_time_again() -> None:
    def talk(connection: socket.socket, request: bytes) -> None:
        # Six of these take longer than one exchange may.
        time.sleep(0.6)
        connection.sendall(answer(request))

    with server(talk) as (url, requests):
        endpoint = connect(url, Timeouts(connect=0.1, read=1.0))
        assert [endpoint.chain_id() for _ in range(6)] == [1] * 6

    assert len(requests) == 6


def addresses(port: int, *hosts: str) -> Callable[..., list[Any]]:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]
    return lambda *arguments, **options: found


def test_connect__first_addresses_refuse__tries_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def talk(connection: socket.socket, request: bytes) -> None:
        connection.sendall(answer(request))

    with server(talk) as (url, _):
        port = int(url.rpartition(":")[2])
        found = addresses(port, "127.0.0.2", "127.0.0.3", "127.0.0.1")
        monkeypatch.setattr(socket, "getaddrinfo", found)

        assert connect(f"http://several.test:{port}", PATIENT).chain_id() == 1


def test_connect__many_addresses_that_are_silent__ends_with_the_exchange(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[Any] = []
    really = socket.socket.connect

    def silent(self: socket.socket, address: Any) -> None:
        if address[1] != 9:
            # A thread of another test's Spark or server has connections of its own.
            return really(self, address)
        tried.append(address)
        time.sleep(self.gettimeout() or 0)
        raise TimeoutError

    monkeypatch.setattr(socket, "getaddrinfo", addresses(9, *["127.0.0.1"] * 1000))
    monkeypatch.setattr(socket.socket, "connect", silent)

    with pytest.raises(EndpointUnavailable) as caught:
        connect("http://many.test:9").chain_id()

    assert caught.value.got == "a time-out"
    assert 1 <= len(tried) <= 3
