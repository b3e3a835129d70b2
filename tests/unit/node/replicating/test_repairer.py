"""Comparisons with several peers, of which some do not answer as they should."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.methods import COMPARE_RANGES
from chainkit.protocol.proto.node_api_pb2 import CompareRangesRequest, CompareRangesResponse
from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.repairer import ROUND_SECONDS, Repairer
from chainkit_node.types import HeldRanges
from support.network.memory_ranges import memory_ranges
from support.network.originator import MemoryLog
from support.network.simulation.loop import run

OWN, SLOW, FAULTY, HONEST = 100, 200, 300, 400
KEY = b"\4" * 65
AGAIN_SECONDS = 5.0
"""When the honest one begins to answer again: the slow one is still being asked."""


@dataclass
class World:
    """Peers with empty logs, and which log each was asked about when."""

    asked: list[tuple[float, int, int]] = field(default_factory=list)
    retracted: set[int] = field(default_factory=set)
    """Nodes that a reorg has taken out of the registry."""

    def listing(self) -> Listing:
        nodes = {
            each: Node(each, KEY, f"http://{each}:1", True)
            for each in (OWN, SLOW, FAULTY, HONEST)
            if each not in self.retracted
        }
        return Listing(nodes, OWN, BlockReference(1, bytes(32)))

    def last_id(self, originator_id: int) -> int:
        return 0

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        raise AssertionError("nobody sends anything")

    async def read_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        return memory_ranges(MemoryLog(), originator_id, through, ranges)

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        """Nothing expires here: what is missing was reported when it was missed."""


@dataclass
class FakePeer:
    """It has logs that are empty, and says so at its own pace."""

    world: World
    node_id: int

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        assert method == COMPARE_RANGES
        asked = CompareRangesRequest.FromString(request)
        now = asyncio.get_running_loop().time()
        self.world.asked.append((now, self.node_id, asked.originator_node_id))
        if self.node_id == SLOW:
            await asyncio.sleep(seconds - 0.001)
        if self.node_id == FAULTY:
            raise ZeroDivisionError
        answer = CompareRangesResponse()
        for _ in asked.ranges:
            answer.contents.add()
        return answer.SerializeToString()

    def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        raise AssertionError("a comparison opens no stream")

    async def close(self) -> None:
        """Nothing to close."""


def repairer_of(world: World) -> Repairer:
    return Repairer(
        world.listing,
        lambda node: FakePeer(world, node.node_id),
        world,
        world,
        world,
        asyncio.get_running_loop().time,
        lambda repair: None,
        lambda compared: None,
        random.Random(1),
    )


def compared(seconds: float) -> list[tuple[float, int, int]]:
    """Compare for some time, with all peers from the beginning; return who was asked when."""
    world = World()

    async def work() -> None:
        repairer = repairer_of(world)
        for each in (SLOW, FAULTY, HONEST):
            repairer.hurry(each)
        asyncio.get_running_loop().call_later(AGAIN_SECONDS, repairer.hurry, HONEST)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await repairer.run()

    run(work())
    return world.asked


def test_compare__a_peer_takes_its_time__others_are_compared_meanwhile() -> None:
    asked = compared(2 * AGAIN_SECONDS)

    of_honest = {log for now, peer, log in asked if peer == HONEST and now >= AGAIN_SECONDS}
    assert of_honest == {OWN, SLOW, FAULTY, HONEST}
    assert len([peer for _, peer, _ in asked if peer == SLOW]) == 2


def test_compare__a_peer_takes_its_time__it_is_asked_one_question_at_a_time() -> None:
    times = [now for now, peer, _ in compared(10 * ROUND_SECONDS) if peer == SLOW]

    assert len(times) > 10
    assert all(later - now > 9.0 for now, later in pairwise(times))


def test_compare__a_comparison_ends_with_a_fault_of_ours__rounds_go_on() -> None:
    asked = compared(3 * ROUND_SECONDS)

    for peer in (FAULTY, HONEST):
        assert any(each == peer and now >= 2 * ROUND_SECONDS for now, each, _ in asked)


def test_compare__a_log_is_wanted_and_its_node_is_taken_back__all_others_are_compared() -> None:
    world = World()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        repairer = repairer_of(world)
        loop.call_later(1.5, repairer.hurry, SLOW)
        loop.call_later(AGAIN_SECONDS, world.retracted.add, FAULTY)
        with suppress(TimeoutError):
            async with asyncio.timeout(1.5 * ROUND_SECONDS):
                await repairer.run()
        assert repairer.comparisons()[SLOW].error is None

    run(work())

    # The first comparison with the slow one takes 30 s.
    second = [log for now, peer, log in world.asked if peer == SLOW and 30.0 <= now < ROUND_SECONDS]
    assert second == [OWN, SLOW, HONEST]
