from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chainkit_indexer.storage.store import Store
from support.chains.branches import publish_round, timed_chain
from support.chains.chain import Deployment, LocalChain
from support.endpoints.fault_proxy import FaultProxy
from support.endpoints.web_socket_relay import WebSocketFault
from support.indexer.follower import FINALITY, clean_run
from support.indexer.honest_rows import chain_tables
from support.indexer.warm_indexer import WarmIndexer

from .conftest import Node

MOST_SECONDS = 60.0
"""After which a process that does not end by itself is killed, and a test that waits gives up."""


@pytest.fixture
def chain(local_deployment: Deployment, tmp_path: Path) -> Iterator[LocalChain]:
    with timed_chain(local_deployment, tmp_path) as running:
        publish_round(running, 0)
        yield running


@pytest.fixture
def proxy(chain: LocalChain) -> Iterator[FaultProxy]:
    with FaultProxy(chain.url) as running:
        yield running


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Run:
    """`chainkit index run` beside a WebSocket, until the head after one more round of blocks."""

    def __init__(
        self, indexer: WarmIndexer, chain: LocalChain, proxy: FaultProxy, folder: Path
    ) -> None:
        self.indexer, self.chain, self.proxy, self.folder = indexer, chain, proxy, folder
        self.node = Node(chain, folder, 1)

    def begin(self, poll_seconds: float) -> None:
        goal = self.chain.head().number + 7
        options = self.node.follower_options(
            rpc=self.proxy.url,
            websocket=self.proxy.web_socket_url,
            poll_seconds=poll_seconds,
            finality=FINALITY,
            until_block=goal,
        )
        self.indexer.begin(["index", "run", *options], MOST_SECONDS)

    def has_idled(self) -> bool:
        return "idle" in self.indexer.said

    def end(self) -> None:
        """The process reached the head by itself, and holds what a clean run does."""
        death = self.indexer.end()
        assert death.code == 0, death.said
        store = Store.open_existing(str(self.node.database))
        assert chain_tables(store) == clean_run(self.chain, self.folder / "clean.db")
        store.close()


@pytest.fixture
def run(warm_indexer: WarmIndexer, chain: LocalChain, proxy: FaultProxy, tmp_path: Path) -> Run:
    return Run(warm_indexer, chain, proxy, tmp_path)


def test_run__honest_web_socket__wakes_at_a_new_head(
    run: Run, chain: LocalChain, proxy: FaultProxy
) -> None:
    run.begin(poll_seconds=10 * MOST_SECONDS)
    wait_until(lambda: proxy.web_sockets.subscriptions and run.has_idled())

    publish_round(chain, 1)

    run.end()


@pytest.mark.parametrize("fault", WebSocketFault, ids=lambda fault: fault.name.lower())
def test_run__web_socket_fails__polls_and_follows_all_the_same(
    run: Run, chain: LocalChain, proxy: FaultProxy, fault: WebSocketFault
) -> None:
    proxy.web_sockets.fault = fault
    run.begin(poll_seconds=0.1)
    wait_until(run.has_idled)

    publish_round(chain, 1)

    run.end()
    assert proxy.web_sockets.delivered[fault]
