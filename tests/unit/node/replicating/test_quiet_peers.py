"""A peer that answers subscriptions with headers, and has no news for an hour (XIP-49 §3.2.7)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from chainkit.misbehavior.types import Misbehavior
from chainkit.types import BlockReference, Node
from chainkit_node.peers.client import PeerClient, subscription
from chainkit_node.peers.connections import PeerConnection
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.replicator import Replicator
from support.network.simulation.loop import run

KEY = b"\4" * 65
HOUR = 3600.0
LISTING = Listing(
    {each: Node(each, KEY, f"http://{each}:1", True) for each in (100, 200, 300)},
    100,
    BlockReference(1, bytes(32)),
)


@dataclass
class Connection:
    """A connection to node 200 or 300, whose streams have headers and no frame."""

    node: Node
    answers_until: float
    """When the node answers no call any more; a moment of the loop's clock."""
    streams: list[int]

    def stream(self, method: str, request: bytes) -> Call:
        self.streams.append(self.node.node_id)
        return Call(self)

    async def unary(self, method: str, request: bytes, seconds: float) -> bytes:
        await self.answered()
        return b""

    async def answered(self) -> None:
        if asyncio.get_running_loop().time() >= self.answers_until:
            await asyncio.sleep(2 * HOUR)

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass
class Call:
    connection: Connection

    async def initial_metadata(self) -> None:
        await self.connection.answered()

    def done(self) -> bool:
        return False

    async def read(self) -> bytes:
        await asyncio.sleep(2 * HOUR)
        return b""

    def cancel(self) -> None:
        """Nobody waits."""


@dataclass
class Replicating:
    """A replicator of two peers, and what it reports."""

    answers_until: float = 2 * HOUR
    streams: list[int] = field(default_factory=list)
    """The node of each stream that was opened."""
    reports: list[tuple[int, Misbehavior]] = field(default_factory=list)
    unreachable: frozenset[int] = frozenset()

    def play(self) -> None:
        async def story() -> None:
            loop, chance = asyncio.get_running_loop(), random.Random(1)
            replicator = Replicator(
                lambda: LISTING,
                self.connect,
                self,
                self,
                SubscriptionPlan(chance),
                loop.time,
                lambda *_: None,
                lambda _: None,
                chance.random,
            )
            task = asyncio.ensure_future(replicator.run())
            await asyncio.sleep(HOUR)
            self.unreachable = replicator.unreachable()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        run(story())

    def connect(self, node: Node) -> PeerClient:
        until = self.answers_until if node.node_id == 200 else 2 * HOUR
        return PeerClient(cast(PeerConnection, Connection(node, until, self.streams)))

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        raise AssertionError("there is no news")

    def last_id(self, originator_id: int) -> int:
        return 7

    def submit_own_liveness(self, node_id: int, misbehavior: Misbehavior, *_: Any) -> None:
        self.reports.append((node_id, misbehavior))


def test_subscription__from_the_beginning__has_a_cursor() -> None:
    # Without one, nodes of another make send news alone.
    assert dict(subscription(200, 0).query.last_seen.node_id_to_sequence_id) == {200: 0}


@pytest.mark.conforms("N43", "N44")
def test_quiet_peers__headers_and_no_frame_for_an_hour__keep_one_stream_without_a_report() -> None:
    replicating = Replicating()

    replicating.play()

    assert replicating.reports == []
    assert sorted(replicating.streams) == [200, 300]
    assert replicating.unreachable == frozenset()


@pytest.mark.conforms("N43")
def test_quiet_peer__answers_no_call_any_more__is_noticed_and_reported() -> None:
    replicating = Replicating(answers_until=HOUR / 2)

    replicating.play()

    assert len(replicating.streams) > 10
    assert set(replicating.reports) == {(200, Misbehavior.UNRESPONSIVE_NODE)}
    assert replicating.unreachable == {200}
