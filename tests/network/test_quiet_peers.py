"""Peers of another make over real gRPC: no heartbeats, no headers, or a connection that breaks.

The server has gRPC's own options: it closes connections that send more pings than these allow.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.nodes import channel
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import BlockReference, Node
from chainkit_node.peers import client
from chainkit_node.peers.client import PeerClient
from chainkit_node.peers.connections import PeerConnection
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.replicator import Replicator
from support.network.api import REPLICATION
from support.network.tcp_proxy import Gate, Mode, TcpProxy

KEY = b"\4" * 65
OWN_ID, PEER_ID = 100, 200
SECONDS = 30.0


class OtherMake:
    """A node of another make: its streams have headers, and a frame when there is news."""

    def __init__(self, has_headers: bool = True) -> None:
        self.streams = 0
        self.queries = 0
        self.news: asyncio.Queue[bytes | grpc.StatusCode] = asyncio.Queue()
        self._has_headers = has_headers
        self._server = grpc.aio.server()
        handlers = {
            "SubscribeEnvelopes": grpc.unary_stream_rpc_method_handler(self._subscribe),
            "QueryEnvelopes": grpc.unary_unary_rpc_method_handler(self._query),
        }
        generic = grpc.method_handlers_generic_handler(REPLICATION, handlers)
        self._server.add_generic_rpc_handlers((generic,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    async def __aenter__(self) -> OtherMake:
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    async def _subscribe(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        self.streams += 1
        if self._has_headers:
            await context.send_initial_metadata(())
        while not isinstance(news := await self.news.get(), grpc.StatusCode):
            yield written_envelopes([news])
        # As a proxy ends it: no google.rpc.Status.
        await context.abort(news, "upstream connect error")

    async def _query(self, request: bytes, context: Any) -> bytes:
        self.queries += 1
        return b""


class Replicating:
    """A replicator of one peer, and what it takes and reports."""

    def __init__(self, url: str) -> None:
        nodes = {OWN_ID: Node(OWN_ID, KEY, "", True), PEER_ID: Node(PEER_ID, KEY, url, True)}
        self._listing = Listing(nodes, OWN_ID, BlockReference(1, bytes(32)))
        self.taken: list[bytes] = []
        self.reports: list[tuple[int, Misbehavior]] = []
        self.replicator = Replicator(
            lambda: self._listing,
            lambda node: PeerClient(PeerConnection(node, None)),
            self,
            self,
            SubscriptionPlan(random.Random(1)),
            asyncio.get_running_loop().time,
            lambda *_: None,
            lambda _: None,
        )

    async def __aenter__(self) -> Replicating:
        self._task = asyncio.ensure_future(self.replicator.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def is_open(self) -> bool:
        return self.replicator.open_streams() == 1

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        self.taken += data
        return Taken(len(data), 0, 0, 0, 0)

    def last_id(self, originator_id: int) -> int:
        return 7

    def submit_own_liveness(self, node_id: int, misbehavior: Misbehavior, *_: Any) -> None:
        # This process, which is node and reader at once, may have waited for its turn.
        if misbehavior is not Misbehavior.SLOW_NODE:
            self.reports.append((node_id, misbehavior))


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def stalled() -> AsyncIterator[tuple[Gate, OtherMake, Replicating]]:
    """A peer whose stream was open when its connections began to bring nothing."""
    with TcpProxy() as proxy:
        gate = proxy.gate()
        async with OtherMake() as node, Replicating(gate.url) as reader:
            gate.target = node.port
            await until(reader.is_open)
            await asyncio.to_thread(gate.set, Mode.STALLED)
            yield gate, node, reader


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


@pytest.mark.conforms("N43", "N44")
def test_quiet_peer__headers_alone__keeps_its_stream_until_news_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "QUIET_SECONDS", 0.3)
    # Nothing is pinged: answers come more often.
    monkeypatch.setattr(channel, "KEEPALIVE_SECONDS", 1.0)

    async def story() -> None:
        async with OtherMake() as node, Replicating(f"http://127.0.0.1:{node.port}") as reader:
            await until(lambda: node.queries >= 20)
            await node.news.put(b"envelope")
            await until(lambda: reader.taken == [b"envelope"])

            assert (node.streams, reader.reports) == (1, [])

    play(story)


@pytest.mark.conforms("N43")
def test_peer__accepts_the_connection_and_sends_no_headers__is_reported() -> None:
    async def story() -> None:
        async with (
            OtherMake(has_headers=False) as node,
            Replicating(f"http://127.0.0.1:{node.port}") as reader,
        ):
            await until(lambda: reader.reports)

            assert reader.reports[0] == (PEER_ID, Misbehavior.UNRESPONSIVE_NODE)

    play(story)


@pytest.mark.conforms("N43")
def test_open_stream__peer_hangs_and_keeps_its_connections__is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(client, "_ANSWER_SECONDS", 0.5)

    async def story() -> None:
        async with stalled() as (_, _, reader):
            await until(lambda: reader.reports)

            assert reader.reports[0] == (PEER_ID, Misbehavior.UNRESPONSIVE_NODE)

    play(story)


@pytest.mark.conforms("N45")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(grpc.StatusCode.UNAVAILABLE, id="gRPC"),
        pytest.param(grpc.StatusCode.INTERNAL, id="Envoy and nginx"),
        pytest.param(grpc.StatusCode.UNKNOWN, id="HAProxy"),
    ],
)
def test_open_stream__a_proxy_loses_its_node__is_opened_again_and_no_failed_request(
    code: grpc.StatusCode,
) -> None:
    async def story() -> None:
        async with OtherMake() as node, Replicating(f"http://127.0.0.1:{node.port}") as reader:
            await until(reader.is_open)
            await node.news.put(code)
            await until(lambda: node.streams == 2 and reader.is_open())

            assert reader.reports == []

    play(story)


def test_open_stream__its_connection_is_dead__is_opened_again_on_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The pings find it alone.
    monkeypatch.setattr(client, "QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(channel, "KEEPALIVE_SECONDS", 1.5)

    async def story() -> None:
        async with stalled() as (gate, node, reader):
            await until(lambda: not reader.is_open())
            await asyncio.to_thread(gate.set, Mode.OPEN)
            await until(lambda: node.streams == 2 and reader.is_open())

    play(story)
