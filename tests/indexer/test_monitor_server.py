from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import requests

from chainkit.errors import (
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    ReorgTooDeep,
    StoreUnavailable,
)
from chainkit.service.monitor_server import (
    MOST_CONNECTIONS,
    Answer,
    MonitorServer,
    parse_listen,
)
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from support.indexer.loop_results import advanced, idle, logging_restored


class Watcher:
    """A monitor that listens, and an HTTP client."""

    def __init__(self) -> None:
        self.stop = StopRequest()
        self.monitor = Monitor(self.stop, "json", "127.0.0.1:0")
        assert self.monitor.address is not None
        self.address = self.monitor.address

    def get(self, path: str) -> requests.Response:
        return requests.get(f"http://{self.address}{path}", timeout=10)


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    with logging_restored():
        watcher = Watcher()
        with watcher.monitor:
            yield watcher


def test_listen__port_0__logs_which_port_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_restored(), Watcher().monitor as monitor:
        line = json.loads(capsys.readouterr().err)

        assert (line["event"], line["address"]) == ("listening", monitor.address)


def test_monitor__not_told_to_listen__opens_no_port(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_restored(), Monitor(StopRequest()) as monitor:
        monitor.succeeded(advanced(1), 0.1)

        assert monitor.address is None
        assert "block 1 0x01010101…: 1 envelopes" in capsys.readouterr().err


def test_readyz__body__names_each_check_with_its_value_and_limit(watcher: Watcher) -> None:
    watcher.monitor.succeeded(advanced(10, head=21), 0.1)
    watcher.monitor.failed(EndpointUnavailable("http://node", "an answer", "see http://node/KEY"))

    answer = watcher.get("/readyz")

    assert answer.status_code == 503
    content = answer.json()
    assert content["ready"] is False
    assert content["checks"]["cursor"] == {"ok": False, "value": 11, "limit": 10, "unit": "blocks"}
    assert content["checks"]["database"]["ok"] is True
    assert content["last_error"] == (
        "EndpointUnavailable: http://node: expected an answer, got see http://node"
    )


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("database", "an answer", "none"),
        InconsistentAnswer("logs at http://node", "all up to sequence id 9", "up to 8"),
    ],
)
def test_readyz__error_and_recovery__goes_red_and_green_again(
    watcher: Watcher, error: StoreUnavailable | InconsistentAnswer
) -> None:
    # The head is of 2023 by its own time, so another one has to follow.
    watcher.monitor.succeeded(advanced(10), 0.1)
    watcher.monitor.succeeded(advanced(11), 0.1)
    assert watcher.get("/readyz").status_code == 200

    for _ in range(3):
        watcher.monitor.failed(error)
    assert watcher.get("/readyz").status_code == 503
    assert watcher.get("/healthz").status_code == 200

    watcher.monitor.succeeded(idle(11), 0.1)
    assert watcher.get("/readyz").status_code == 200


def test_metrics__scrape__is_prometheus_text(watcher: Watcher) -> None:
    watcher.monitor.succeeded(advanced(10, envelopes=7), 0.1)

    answer = watcher.get("/metrics")

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "\nchainkit_indexer_envelopes_total 7.0\n" in answer.text


def test_monitor__loop_ended_by_an_error__stays_until_the_last_scrape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_restored():
        watcher = Watcher()
        seen: list[str] = []

        def scrape_later() -> None:
            while not watcher.monitor.health.observation.is_stopped:
                time.sleep(0.01)
            assert watcher.get("/healthz").status_code == 503
            seen.append(watcher.get("/metrics").text)

        thread = threading.Thread(target=scrape_later)
        thread.start()
        with pytest.raises(ReorgTooDeep), watcher.monitor:
            raise ReorgTooDeep("block 7", "0xaa", "0xbb")
        thread.join()

    assert 'chainkit_indexer_stopped{kind="reorg_too_deep"} 1.0' in seen[0]
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["event"] == "stopped"
    with pytest.raises(requests.ConnectionError):
        watcher.get("/metrics")


@pytest.mark.parametrize("error", [ConfigurationError("--rpc", "a URL", "none"), KeyError("x")])
def test_monitor__error_of_the_command_line_or_ours__ends_at_once(error: Exception) -> None:
    with logging_restored():
        watcher = Watcher()
        with pytest.raises(type(error)), watcher.monitor:
            raise error

    with pytest.raises(requests.ConnectionError):
        watcher.get("/metrics")


def test_monitor__stop_requested__waits_for_no_scrape() -> None:
    with logging_restored():
        watcher = Watcher()
        watcher.stop.is_set = True
        with pytest.raises(ReorgTooDeep), watcher.monitor:
            raise ReorgTooDeep("block 7", "0xaa", "0xbb")


def test_server__unknown_path__answers_404_and_names_what_there_is(watcher: Watcher) -> None:
    answer = watcher.get("/../etc/passwd")

    assert answer.status_code == 404
    assert answer.text == "expected one of /healthz, /metrics, /readyz\n"


def send(address: str, request: bytes) -> bytes:
    """Return what came before the connection was closed or reset."""
    host, port = address.split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=10) as client, suppress(OSError):
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65536):
            received += part
    return received


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\x00\xff\xfe" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 999999999\r\n\r\nx",
        b"DELETE /healthz HTTP/1.1\r\n\r\n",
    ],
)
def test_server__garbage__is_refused_and_the_next_request_answered(
    watcher: Watcher, request_: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    answer = send(watcher.address, request_)

    assert b" 200 " not in answer
    assert watcher.get("/metrics").status_code == 200
    assert capsys.readouterr().err == ""


def test_server__head_request__has_no_body(watcher: Watcher) -> None:
    connection = http.client.HTTPConnection(watcher.address, timeout=10)
    connection.request("HEAD", "/metrics")
    answer = connection.getresponse()

    assert (answer.status, answer.read()) == (200, b"")
    connection.close()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_server__clients_that_say_nothing__take_no_more_than_their_share(
    watcher: Watcher,
) -> None:
    host, port = watcher.address.split(":")
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection((host, int(port))))

        eventually(lambda: send(watcher.address, b"GET /healthz HTTP/1.0\r\n\r\n") == b"")

    eventually(lambda: b" 503 " in send(watcher.address, b"GET /readyz HTTP/1.0\r\n\r\n"))


def test_server__answer_that_fails__is_logged_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> Answer:
        raise KeyError("x")

    answers = {"/metrics": fail, "/healthz": lambda: Answer.of_json(True, {})}
    server = MonitorServer(("127.0.0.1", 0), answers)
    try:
        assert send(server.address, b"GET /metrics HTTP/1.0\r\n\r\n") == b""
        assert b" 200 " in send(server.address, b"GET /healthz HTTP/1.0\r\n\r\n")
    finally:
        server.close()

    assert [record.getMessage() for record in caplog.records] == [
        "monitor: expected an answer, got KeyError('x')"
    ]


def test_server__port_in_use__says_so(watcher: Watcher) -> None:
    with pytest.raises(ConfigurationError, match="to listen on, got Address already in use"):
        MonitorServer(parse_listen(watcher.address), {})


def test_server__closed__frees_the_port() -> None:
    first = MonitorServer(("127.0.0.1", 0), {})
    first.close()

    MonitorServer(parse_listen(first.address), {}).close()
