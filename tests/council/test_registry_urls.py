"""Nodes whose URL is asked for an answer before they are added: they may be silent, or hostile."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chainkit.contracts.registry import NOT_ASKED, find_silent
from chainkit.service.grpc_methods import Bounds, Methods
from support.chains.chain import LocalChain
from support.council.registry_commands import KEYS, OPERATOR, add_arguments, registry_command
from support.network.grpc_server import GrpcServer


def asking_arguments(address: str) -> list[str]:
    """Add a node, whose URL is asked though it is of this machine."""
    return [*unasked_arguments(address), "--check-private-url"]


def unasked_arguments(address: str) -> list[str]:
    return [word for word in add_arguments(KEYS[2], address) if word != "--no-check-url"]


@contextmanager
def http_server(status: int) -> Iterator[tuple[str, list[str]]]:
    """A server that answers with a status, redirects included; and which paths were asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            assert self.headers.get("Authorization") is None
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"\x1b[2J!")

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "warns"), [(200, False), (404, False), (302, False), (503, True)]
)
def test_add__url_answers__is_warned_of_only_if_the_server_cannot(
    local_chain: LocalChain, status: int, warns: bool
) -> None:
    with http_server(status) as (address, paths):
        outcome = registry_command(local_chain, *asking_arguments(address))

    assert outcome.code == 0, outcome.err
    assert (f"warning: {address} does not answer: HTTP status 503" in outcome.err) is warns
    assert bool(outcome.err) is warns
    assert paths == ["/"]
    assert "\x1b" not in outcome.out + outcome.err


def test_plan__url_does_not_answer__is_a_warning_and_no_refusal(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(
        f"nodes:\n  - key: 0x{KEYS[0].hex()}\n    holder: {OPERATOR}\n"
        "    http_address: http://127.0.0.1:9\n    status: enabled\n"
    )

    asked = registry_command(local_chain, "plan", path, "--check-private-url")
    not_asked = registry_command(local_chain, "plan", path, "--no-check-url")

    assert (asked.code, not_asked.code) == (0, 0)
    assert asked.err.startswith("warning: http://127.0.0.1:9 does not answer: no connection")
    assert not_asked.err == ""
    assert asked.out == not_asked.out


def test_add__password_for_the_host_in_netrc__is_not_sent(
    local_chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login council password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    with http_server(200) as (address, paths):
        outcome = registry_command(local_chain, *asking_arguments(address))

    # The server ends without an answer where it is sent one.
    assert (outcome.code, outcome.err, paths) == (0, "", ["/"])


@contextmanager
def dripping_server() -> Iterator[str]:
    """A server that sends its headers without end, a few bytes at a time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    while not ended.is_set():
                        connection.sendall(b"X-More: 1\r\n")
                        time.sleep(0.05)
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def test_find_silent__headers_that_never_end__are_given_up() -> None:
    with dripping_server() as address:
        found = find_silent([address], patience_seconds=0.5, asks_private=True)

    assert found == {address: "no answer within 0.5 s"}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://nowhere.invalid", "no connection, or no HTTP"),
        ("https://127.0.0.1:9", "no connection, or no HTTP"),
    ],
)
def test_find_silent__nobody_there__is_told(url: str, reason: str) -> None:
    assert find_silent([url], asks_private=True) == {url: reason}


@pytest.mark.parametrize(
    ("greeting", "found"),
    [(b"\0\0\x18\4\0\0\0\0\0" + bytes(24), None), (b"SSH-2.0-x\r\n", "no connection, or no HTTP")],
    ids=["HTTP/2", "SSH"],
)
def test_find_silent__server_of_another_protocol__answers_if_it_may_be_grpc(
    greeting: bytes, found: str | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=greet, args=(listening, greeting))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        silent = find_silent([url], asks_private=True)
        thread.join()

    assert silent.get(url) == found


def greet(listening: socket.socket, greeting: bytes) -> None:
    """Answer one connection with these bytes, whatever it asks."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(greeting)


def test_find_silent__a_node_that_speaks_grpc_alone__answers() -> None:
    async def asked() -> dict[str, str]:
        server = GrpcServer(Methods({}, {}), {}, Bounds())
        port = await server.start("127.0.0.1:0")
        try:
            url = f"http://127.0.0.1:{port}"
            return await asyncio.to_thread(find_silent, [url], asks_private=True)
        finally:
            await server.stop(0.0)

    assert asyncio.run(asked()) == {}


def test_find_silent__several__tells_those_that_are() -> None:
    with http_server(200) as (good, _), http_server(500) as (bad, _):
        assert find_silent([good, bad, good], asks_private=True) == {bad: "HTTP status 500"}


def test_find_silent__http_where_https_is_said__has_no_certificate() -> None:
    with http_server(200) as (address, _):
        url = address.replace("http://", "https://")

        assert find_silent([url], asks_private=True) == {url: "no valid certificate"}


def test_find_silent__none__is_empty() -> None:
    assert find_silent([]) == {}


def test_add__url_of_a_private_network__is_not_asked_and_a_caution(local_chain: LocalChain) -> None:
    with http_server(200) as (address, paths):
        outcome = registry_command(local_chain, *unasked_arguments(address))

    assert outcome.code == 0, outcome.err
    words = "is not asked for an answer: it is loopback, link-local or private"
    assert outcome.err == f"warning: {address} {words}; --check-private-url asks it\n"
    assert paths == []
    cautions = [line for line in outcome.out.splitlines() if line.startswith("caution ")]
    assert outcome.out.splitlines()[: len(cautions)] == cautions
    assert [word in " ".join(cautions) for word in ("no https", "loopback")] == [True, True]


def test_find_silent__name_that_leads_to_this_machine__is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(_host: str, port: int, *_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with http_server(200) as (address, paths):
        url = address.replace("127.0.0.1", "node.example.org")
        silent = find_silent([url])
        asked = find_silent([url], asks_private=True)

    assert silent == {url: NOT_ASKED}
    assert (asked, paths) == ({}, ["/"])


def test_find_silent__private_url_where_a_proxy_is_set__does_not_ask_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    private, public = "http://10.1.2.3/", "http://node.example.org/"
    with http_server(200) as (proxy, paths):
        monkeypatch.setenv("http_proxy", proxy)
        silent = find_silent([private, public])

    assert silent == {private: NOT_ASKED}
    assert paths == [public]
