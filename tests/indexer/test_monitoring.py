from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from localnet.postgres import Postgres
from support.chains.chain import LocalChain
from support.endpoints import faults
from support.endpoints.fault_proxy import FaultProxy

from .conftest import Node, publish

PATIENCE_SECONDS = 60.0


class Running:
    """`chainkit index run --listen` as a load balancer and Prometheus see it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self.process = process
        self.address = json.loads(process.stderr.readline())["address"]
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(process.stderr,))
        self._reader.start()

    def _read(self, stream: Any) -> None:
        self.lines.extend(stream)
        stream.close()

    def get(self, path: str) -> requests.Response:
        return requests.get(f"http://{self.address}{path}", timeout=10)

    def red(self) -> set[str]:
        checks = self.get("/readyz").json()["checks"]
        return {name for name, check in checks.items() if not check["ok"]}

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.get("/readyz").text
            time.sleep(0.01)

    def wait_until_green(self) -> None:
        self.wait_until(lambda: self.get("/readyz").status_code == 200)

    def wait_until_following(self) -> None:
        """The head may be old by then, as seen for the first time."""
        self.wait_until(lambda: "cursor" not in self.red())

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self._reader.join()
        return code

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@contextmanager
def started(node: Node, *options: str, **changes: object) -> Iterator[Running]:
    listen = ("--listen", "127.0.0.1:0", "--log-format", "json")
    running = Running(node.start(*listen, *options, **changes))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture
def proxy(local_chain: LocalChain) -> Iterator[FaultProxy]:
    with FaultProxy(local_chain.url) as running:
        yield running


def test_run__listening__turns_green_and_shows_what_it_did_and_ends_with_0(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 3)
    with started(node) as running:
        running.wait_until_green()

        head = local_chain.head().number
        metrics = running.get("/metrics").text
        assert running.get("/healthz").json()["alive"] is True
        assert f"\nchainkit_indexer_cursor_block {float(head)}\n" in metrics
        assert "\nchainkit_indexer_envelopes_total 3.0\n" in metrics
        assert '\nchainkit_indexer_sequence_id{originator="0"} 3.0\n' in metrics
        name = f'{{endpoint="{local_chain.url}",state="available"}}'
        assert f"\nchainkit_indexer_endpoint_state{name} 1.0\n" in metrics
        folder = f'{{folder="{node.database.parent}"}}'
        assert f"\nchainkit_indexer_disk_free_bytes{folder} " in metrics
        assert running.end() == 0

    first = running.events()[0]
    assert (first["event"], first["block"], first["envelopes"]) == ("advanced", head, 3)


def test_readyz__no_more_blocks__turns_red_and_green_with_the_next(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    with started(node, "--stale-seconds", "2") as running:
        running.wait_until_following()
        local_chain.mine()
        running.wait_until_green()

        running.wait_until(lambda: running.red() == {"head"})
        assert running.get("/healthz").status_code == 200

        local_chain.mine()
        running.wait_until_green()


def test_readyz__catching_up__is_red_until_the_cursor_is_at_the_head(
    node: Node, local_chain: LocalChain
) -> None:
    local_chain.anvil.request("anvil_mine", hex(200))
    with started(node, "--page-blocks", "1", "--ready-lag-blocks", "0") as running:
        running.wait_until(lambda: running.red() == {"cursor"})
        assert "\nchainkit_indexer_ready 0.0\n" in running.get("/metrics").text

        running.wait_until_green()
    assert {"catching_up", "caught_up"} <= {event["event"] for event in running.events()}


def test_readyz__endpoint_leaves_logs_out__is_red_until_they_come(
    node: Node, local_chain: LocalChain, proxy: FaultProxy
) -> None:
    publish(local_chain, 1)
    with started(node, rpc=proxy.url) as running:
        running.wait_until_green()
        proxy.arm(*faults.LOG_FAULTS[:1])
        publish(local_chain, 1, start=1)

        running.wait_until(lambda: "sequence" in running.red())
        assert "InconsistentAnswer" in running.get("/readyz").json()["last_error"]
        assert 'kind="inconsistent_answer' in running.get("/metrics").text

        proxy.lift()
        running.wait_until_green()


def test_readyz__endpoint_gone__is_red_at_the_limit_until_it_is_back(
    node: Node, local_chain: LocalChain, proxy: FaultProxy
) -> None:
    publish(local_chain, 1)
    with started(node, "--stale-seconds", "2", rpc=proxy.url) as running:
        running.wait_until_following()
        local_chain.mine()
        running.wait_until_green()
        proxy.refuse_connections()

        running.wait_until(lambda: {"head", "step"} <= running.red())

        proxy.accept_connections()
        local_chain.mine()
        running.wait_until_green()


def test_readyz__postgresql_stops__is_red_until_it_is_back(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 1)
    with (
        Postgres() as server,
        started(node, database=server.new_database()) as running,
    ):
        running.wait_until_green()
        server.stop()

        running.wait_until(lambda: "database" in running.red())
        metrics = running.get("/metrics").text
        assert "\nchainkit_indexer_database_up 0.0\n" in metrics
        # Where the process works, since the database's own disk is its server's.
        assert f'\nchainkit_indexer_disk_free_bytes{{folder="{Path.cwd()}"}} ' in metrics

        server.start()
        running.wait_until_green()
    assert "postgres:" not in "".join(running.lines)


def test_run__reorg_beyond_the_final_block__tells_prometheus_and_ends_with_2(
    node: Node, local_chain: LocalChain
) -> None:
    publish(local_chain, 5)
    with started(node, "--finality", "1") as running:
        running.wait_until_green()
        local_chain.reorg(4, [])

        running.wait_until(lambda: running.red() >= {"loop"})
        assert running.get("/healthz").status_code == 503
        metrics = running.get("/metrics").text

        assert '\nchainkit_indexer_stopped{kind="reorg_too_deep"} 1.0\n' in metrics
        assert running.process.wait(timeout=30) == 2
    *_, stopped, sentence = running.lines
    assert json.loads(stopped)["error"] == "ReorgTooDeep"
    assert sentence.startswith("error: ")
