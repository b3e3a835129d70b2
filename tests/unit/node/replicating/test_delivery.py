"""A comparison leaves some envelopes to open streams, and fetches others itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.methods import COMPARE_RANGES
from chainkit.protocol.proto.message_api_pb2 import QueryEnvelopesRequest
from chainkit.protocol.proto.node_api_pb2 import CompareRangesRequest, CompareRangesResponse
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import BlockReference, Node
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.delivery import Delivery
from chainkit_node.replicating.dependencies import Compared
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.repairer import ROUND_SECONDS, Repairer
from chainkit_node.types import HeldRanges
from support.network.memory_ranges import memory_ranges
from support.network.originator import MemoryLog, Originator
from support.network.simulation.loop import run

OWN, PEER = 100, 200
SIGNS = Originator(PEER)
LOG = SIGNS.log(9)


def log_of(*ids: int) -> MemoryLog:
    log = MemoryLog()
    for each in ids:
        log.store(SIGNS.received(LOG[each - 1]))
    return log


@dataclass
class World:
    """A node that holds 1, 2 and 4 of a peer's nine, and how the peer's stream is doing."""

    delivery: Delivery
    held: MemoryLog = field(default_factory=lambda: log_of(1, 2, 4))
    fetched: list[int] = field(default_factory=list)
    outcomes: list[Compared] = field(default_factory=list)

    def listing(self) -> Listing:
        nodes = {each: Node(each, b"\4" * 65, f"http://{each}:1", True) for each in (OWN, PEER)}
        return Listing(nodes, OWN, BlockReference(1, bytes(32)))

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        new = [SIGNS.received(each) for each in data]
        self.fetched += [each.sequence_id for each in new]
        for each in new:
            self.held.store(each)
        return Taken(len(new), 0, 0, 0, 0)

    def last_id(self, originator_id: int) -> int:
        last = self.held.last()
        return last.sequence_id if last and originator_id == PEER else 0

    async def read_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        log = self.held if originator_id == PEER else MemoryLog()
        return memory_ranges(log, originator_id, through, ranges)

    def unexplained(self, originator_id: int) -> Sequence[range]:
        return ()

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        """Gaps are not of interest here."""

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        whole = log_of(*range(1, len(LOG) + 1))
        if method != COMPARE_RANGES:
            asked = QueryEnvelopesRequest.FromString(request)
            after = asked.query.last_seen.node_id_to_sequence_id[PEER]
            return written_envelopes(LOG[after : after + asked.limit])
        question = CompareRangesRequest.FromString(request)
        log = whole if question.originator_node_id == PEER else MemoryLog()
        ranges = [LogRange(each.level, each.number) for each in question.ranges]
        found = memory_ranges(
            log, question.originator_node_id, question.through_sequence_id, ranges
        )
        answer = CompareRangesResponse(highest_sequence_id=found.highest)
        for each in found.contents:
            answer.contents.add(digests=each.digests, expired=each.expired)
        return answer.SerializeToString()

    def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        raise AssertionError("a comparison opens no stream")

    async def close(self) -> None:
        """Nothing to close."""

    def compare(self, seconds: float) -> None:
        """Compare with the peer for so long."""

        async def work() -> None:
            repairer = Repairer(
                self.listing,
                lambda node: self,
                self,
                self,
                self,
                asyncio.get_running_loop().time,
                lambda: 0,
                lambda repair: None,
                self.outcomes.append,
                lambda originator_id: self.delivery,
                random.Random(1),
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await repairer.run()

        run(work())

    def is_settled(self) -> bool:
        """The outcome of the last comparison of the peer's own log."""
        return next(
            each for each in reversed(self.outcomes) if each.originator_id == PEER
        ).is_settled


def test_compare__a_stream_is_open__only_what_it_never_brings_is_fetched() -> None:
    world = World(Delivery.WAITS)

    world.compare(ROUND_SECONDS / 2)

    assert world.fetched == [3]
    assert not world.is_settled()


def test_compare__no_stream_is_open__all_is_fetched() -> None:
    world = World(Delivery.NONE)

    world.compare(ROUND_SECONDS / 2)

    assert world.fetched == [3, 5, 6, 7, 8, 9]


def test_compare__an_open_stream_brings_nothing_until_the_next_round__all_is_fetched() -> None:
    world = World(Delivery.WAITS)

    world.compare(ROUND_SECONDS * 2.5)

    assert world.fetched == [3, 5, 6, 7, 8, 9]
    assert world.is_settled()


def test_compare__this_node_stores_slower_than_its_stream_delivers__fetches_no_backlog() -> None:
    world = World(Delivery.TAKES)

    world.compare(ROUND_SECONDS * 9.5)

    assert world.fetched == [3]
    assert not world.is_settled()
