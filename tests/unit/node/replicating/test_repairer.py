"""Comparisons with several peers, of which some do not answer as they should."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import grpc
import pytest

from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.methods import COMPARE_RANGES, QUERY_ENVELOPES
from chainkit.protocol.proto.message_api_pb2 import QueryEnvelopesRequest
from chainkit.protocol.proto.node_api_pb2 import CompareRangesRequest, CompareRangesResponse
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import BlockReference, Node
from chainkit_node.peers.client import PeerRefused
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.delivery import Delivery
from chainkit_node.replicating.dependencies import Compared
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.repairer import ROUND_SECONDS, Repairer
from chainkit_node.types import HeldRanges
from support.network.memory_ranges import memory_ranges
from support.network.originator import BEGIN_NS, SECOND_NS, MemoryLog, Originator
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

    def unexplained(self, originator_id: int) -> Sequence[range]:
        return ()

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
        lambda: 0,
        lambda repair: None,
        lambda compared: None,
        lambda originator_id: Delivery.NONE,
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


OTHER_MAKE = 500


@dataclass
class PeerOfAnotherMake(FakePeer):
    """It has XIP-49's methods alone, and an envelope of its own that has just been originated."""

    envelope: bytes = b""

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        if method != QUERY_ENVELOPES:
            refusal = PeerRefused(f"node {self.node_id}", "envelopes", "UNIMPLEMENTED")
            refusal.code = grpc.StatusCode.UNIMPLEMENTED
            raise refusal
        asked = QueryEnvelopesRequest.FromString(request).query
        [originator_id] = asked.originator_node_ids
        after = asked.last_seen.node_id_to_sequence_id[originator_id]
        is_behind = originator_id == OTHER_MAKE and after < 7
        return written_envelopes([self.envelope] if is_behind else [])


@dataclass
class MixedWorld(World):
    """Its one peer is of another make."""

    taken: list[bytes] = field(default_factory=list)
    answers: list[tuple[int, int, list[range], list[range]]] = field(default_factory=list)
    comparisons: list[Compared] = field(default_factory=list)

    def listing(self) -> Listing:
        nodes = {each: Node(each, KEY, f"http://{each}:1", True) for each in (OWN, OTHER_MAKE)}
        return Listing(nodes, OWN, BlockReference(1, bytes(32)))

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        new = [each for each in data if each not in self.taken]
        self.taken += new
        return Taken(len(new), 0, len(data) - len(new), 0, 0)

    def last_id(self, originator_id: int) -> int:
        return 7 if originator_id == OTHER_MAKE and self.taken else 0

    def unexplained(self, originator_id: int) -> Sequence[range]:
        return [range(3, 6)] if originator_id == OTHER_MAKE else []

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        self.answers.append((originator_id, through, list(held), list(expired)))


@pytest.mark.conforms("N48")
def test_compare__a_peer_of_another_make__is_asked_by_queries_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, node = MixedWorld(), Originator(OTHER_MAKE)
    peer = PeerOfAnotherMake(world, OTHER_MAKE, node.signed(7, 0.0))

    async def work() -> None:
        repairer = Repairer(
            world.listing,
            lambda node: peer,
            world,
            world,
            world,
            asyncio.get_running_loop().time,
            lambda: BEGIN_NS + 60 * SECOND_NS,
            lambda repair: None,
            world.comparisons.append,
            lambda originator_id: Delivery.NONE,
            random.Random(1),
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(3.5 * ROUND_SECONDS):
                await repairer.run()
        assert repairer.comparisons()[OTHER_MAKE].error is None
        assert repairer.highest() == {OTHER_MAKE: 7}

    caplog.set_level(logging.INFO)
    run(work())

    assert world.taken == [peer.envelope]
    assert (OTHER_MAKE, 0, [range(3, 6)], [range(3, 6)]) in world.answers
    assert [each.is_settled for each in world.comparisons if each.originator_id == OTHER_MAKE] == [
        False,
        True,
        True,
        True,
    ]
    # It has nothing of this node's that has not expired: that shows nothing.
    assert not any(each.is_settled for each in world.comparisons if each.originator_id == OWN)
    told = [each for each in caplog.records if "queries are asked instead" in each.getMessage()]
    assert [each.levelno for each in told] == [logging.INFO]
    assert not any("could not be compared" in each.getMessage() for each in caplog.records)


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
