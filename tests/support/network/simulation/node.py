"""A simulated node: the product's replication over logs in memory, and streams for the others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chainkit.errors import ChainkitError
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.judging import judge_batch
from chainkit.misbehavior.report import LivenessRequest, parse_unsigned, safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto import message_api_pb2, node_api_pb2
from chainkit.protocol.received_envelope import read_received
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.signatures import SigningKey
from chainkit.types import Node
from chainkit_node.peers.client import COMPARE_RANGES, QUERY_ENVELOPES, PeerRefused, PeerSilent
from chainkit_node.replicating.dependencies import KnownLogs
from chainkit_node.replicating.dependency_keeper import DependencyKeeper
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.own_log import OwnLog
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.repairer import Repairer
from chainkit_node.replicating.replicator import Replicator
from chainkit_node.types import HeldRanges
from support.network.memory_ranges import memory_ranges
from support.network.originator import BEGIN_NS, SECOND_NS, MemoryLog, Originator
from support.network.simulation.lies import Liar, Lie, page, signed
from support.network.simulation.world import World

LOOK_SECONDS = 2.5
"""Seldom: most of a story's cost are looks that find nothing new."""


@dataclass(frozen=True)
class Accusation:
    """A report of a node."""

    reporter_id: int
    node_id: int
    misbehavior: Misbehavior
    weight: Weight


@dataclass
class SimulatedNode:
    """One node, with everything that outlives a crash."""

    world: World
    node_id: int
    clock_ahead: float = 0.0
    """Seconds by which its clock is ahead of the true time."""
    liar: Liar | None = None
    logs: dict[int, MemoryLog] = field(default_factory=dict)
    disputed: set[tuple[int, int]] = field(default_factory=set)
    filled: list[tuple[int, int]] = field(default_factory=list)
    """Envelopes that were stored below others, in the order in which they came."""
    accusations: list[Accusation] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Errors that no peer can cause."""
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = SigningKey(self.node_id.to_bytes(32, "big"))
        self.signs = Originator(self.node_id, self.key)
        self.changed = asyncio.Event()
        self.own_log: OwnLog | None = None

    # ---------------------------------------------------------------- life

    @property
    def is_up(self) -> bool:
        return bool(self.tasks)

    def start(self) -> None:
        """Begin with what is stored."""
        chance = random.Random(self.world.chance.random())
        self.dependencies = DependencyKeeper(
            self._known, self, self.world.seconds, self._dropped, LOOK_SECONDS
        )
        self.own_log = OwnLog(self._listing, self._connect, self, None)
        repairer = Repairer(
            self._listing,
            self._connect,
            self,
            self,
            self,
            self.world.seconds,
            lambda repair: None,
            self.dependencies.compared,
            chance,
            LOOK_SECONDS,
        )
        self.replicator = Replicator(
            self._listing,
            self._connect,
            self,
            self,
            SubscriptionPlan(chance),
            self.world.seconds,
            lambda originator_id, taken: None,
            repairer.hurry,
            chance.random,
            LOOK_SECONDS,
        )
        works = (
            *(self.own_log.run(), self.replicator.run(), repairer.run()),
            self.dependencies.run(repairer.hurry),
        )
        self.tasks = [asyncio.ensure_future(each) for each in works]

    async def crash(self) -> None:
        """End at once; streams of others break."""
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), repr(ended)
        self._tell()

    def restore(self, logs: dict[int, MemoryLog]) -> None:
        """Have an older copy of the database."""
        assert not self.is_up
        self.logs = logs

    def copied_logs(self) -> dict[int, MemoryLog]:
        """A backup."""
        copies: dict[int, MemoryLog] = {}
        for originator_id, log in self.logs.items():
            key = self.world.nodes[originator_id].key.public_key
            copies[originator_id] = MemoryLog()
            for envelope in log.envelopes():
                copies[originator_id].store(read_received(envelope, originator_id, key))
        return copies

    def now_ns(self) -> int:
        return self.world.true_ns() + int(self.clock_ahead * SECOND_NS)

    def _listing(self) -> Any:
        return self.world.listing(self.node_id)

    def _known(self) -> KnownLogs:
        held = {each: self.last_id(each) for each in self.world.entries}
        return KnownLogs(held, (), self.world.entries.keys(), self.node_id, self.now_ns())

    def _dropped(self) -> None:
        raise AssertionError("a story has few envelopes")

    def _connect(self, node: Node) -> SimulatedPeer:
        return SimulatedPeer(self.world, self, self.world.nodes[node.node_id])

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    # ---------------------------------------------------------------- its own log

    def log(self, originator_id: int) -> MemoryLog:
        return self.logs.setdefault(originator_id, MemoryLog())

    def publish(self) -> bytes:
        """Originate a message, as the sequencer does. Raises NotReady."""
        assert self.own_log is not None
        self.own_log.check()
        last = self.log(self.node_id).last()
        sequence_id = last.sequence_id + 1 if last else 1
        now_ns = max(last.originator_ns if last else 0, self.now_ns())
        seconds = (now_ns - BEGIN_NS) / SECOND_NS
        envelope = signed(self.signs, self.liar, sequence_id, seconds, self._seen())
        self.log(self.node_id).store(self.signs.received(envelope))
        self._tell()
        return envelope

    def _seen(self) -> dict[int, int]:
        """Some ids of other nodes that a client has seen here."""
        chance = self.world.chance
        others = [each for each in self.logs if each != self.node_id and self.last_id(each)]
        some = chance.sample(others, chance.randint(0, len(others)))
        return {each: chance.randint(1, self.last_id(each)) for each in some}

    # ---------------------------------------------------------------- what others sent

    def take(self, data: Sequence[bytes], source: Source) -> Taken:
        """As the intake, in memory. Faults of the product are kept: it goes on after them."""
        try:
            return self._take(data, source)
        except ChainkitError:
            raise
        except Exception as error:
            self.faults.append(repr(error))
            raise

    def _take(self, data: Sequence[bytes], source: Source) -> Taken:
        key = source.signing_key
        received = [read_received(each, source.originator_id, key) for each in data]
        log = self.log(source.originator_id)
        judged = judge_batch(received, log, self.now_ns(), source.is_direct)
        for each in (*judged.new, *judged.late):
            log.store(each)
        self.filled += [(each.originator_id, each.sequence_id) for each in judged.late]
        self.disputed |= {
            (each.other.originator_id, each.other.sequence_id) for each in judged.disputes
        }
        for offence in judged.offences:
            self.submit_own_safety(offence.node_id, offence.misbehavior, offence.envelopes)
        if judged.new or judged.late:
            self._tell()
            self.dependencies.take([*judged.new, *judged.late])
        return Taken(
            len(judged.new),
            len(judged.late),
            judged.repeated,
            len(judged.disputes),
            len(judged.gaps),
        )

    def last_id(self, originator_id: int) -> int:
        last = self.log(originator_id).last()
        return last.sequence_id if last else 0

    # ---------------------------------------------------------------- comparisons

    async def read_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        return self.held_ranges(originator_id, through, ranges)

    def held_ranges(
        self, originator_id: int, through: int, ranges: Sequence[LogRange]
    ) -> HeldRanges:
        """As the database has them."""
        disputed = {each for of, each in self.disputed if of == originator_id}
        return memory_ranges(self.log(originator_id), originator_id, through, ranges, disputed)

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        """Nothing expires here: what is missing was reported when it was missed."""

    # ---------------------------------------------------------------- reports

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        """Store a report, with what it is worth."""
        data = safety_report(node_id, misbehavior, envelopes, self.now_ns(), True)
        keys = {each: entry.signing_key for each, entry in self.world.entries.items()}
        judgement = judge_safety(parse_unsigned(data), keys, self.now_ns())
        self._accuse(node_id, misbehavior, judgement.weight)

    def submit_own_liveness(
        self,
        node_id: int,
        misbehavior: Misbehavior,
        request: LivenessRequest,
        response_time_ns: int,
    ) -> None:
        self._accuse(node_id, misbehavior, Weight.CLAIMED)

    def _accuse(self, node_id: int, misbehavior: Misbehavior, weight: Weight) -> None:
        self.accusations.append(Accusation(self.node_id, node_id, misbehavior, weight))

    # ---------------------------------------------------------------- what it sends

    def page(self, reader_id: int, originator_id: int, after_id: int) -> tuple[list[bytes], int]:
        """Return a page behind an id as a reader gets it, and the id behind which the next is."""
        liar = self.liar if originator_id == self.node_id else None
        return page(self.log(originator_id), liar, reader_id, after_id)


@dataclass
class SimulatedPeer:
    """A node as another one asks it, over a link."""

    world: World
    reader: SimulatedNode
    node: SimulatedNode

    async def subscribe(
        self, originator_id: int, after_id: int, first_seconds: float, idle_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        await self._arrive(first_seconds)
        yield []
        begun = len(self.node.filled)
        life = self.node.tasks
        while True:
            self._check(life)
            self._check_filled(self.node.filled[begun:], originator_id, after_id)
            page, after_id = self.node.page(self.reader.node_id, originator_id, after_id)
            if page:
                await self.world.travel()
                await self._until_linked(idle_seconds)
                self._check(life)
                self._note(originator_id, page)
                yield page
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(15):
                    await self.node.changed.wait()
            await self._until_linked(idle_seconds)
            yield []

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        await self._arrive(seconds)
        answer = self._answer(method, request)
        await self.world.travel()
        if self._is_lost():
            raise self._silent()
        return answer

    def _answer(self, method: str, request: bytes) -> bytes:
        if method == COMPARE_RANGES:
            asked = node_api_pb2.CompareRangesRequest.FromString(request)
            ranges = [LogRange(each.level, each.number) for each in asked.ranges]
            held = self.node.held_ranges(
                asked.originator_node_id, asked.through_sequence_id, ranges
            )
            answer = node_api_pb2.CompareRangesResponse(highest_sequence_id=held.highest)
            for content in held.contents:
                answer.contents.add(digests=content.digests, expired=content.expired)
            return answer.SerializeToString()
        assert method == QUERY_ENVELOPES
        query = message_api_pb2.QueryEnvelopesRequest.FromString(request)
        [originator_id] = query.query.originator_node_ids
        after_id = query.query.last_seen.node_id_to_sequence_id[originator_id]
        page, _ = self.node.page(self.reader.node_id, originator_id, after_id)
        return written_envelopes(page[: query.limit])

    def _note(self, originator_id: int, page: Sequence[bytes]) -> None:
        """Let a liar know what of its own log arrived at an honest node."""
        liar = self.node.liar
        if liar is None or originator_id != self.node.node_id or self.reader.liar is not None:
            return
        # A repair may have brought later ones before: a stream that repeats them shows no gap.
        lacked = self.reader.last_id(originator_id) < liar.from_id
        ids = [parse_originated(each).envelope.sequence_id for each in page]
        liar.reached(lacked, list(zip(ids, page, strict=True)))

    async def close(self) -> None:
        """There is nothing to close."""

    async def _arrive(self, seconds: float) -> None:
        """Send a request and wait for the first bytes of the answer."""
        await self.world.travel()
        lie = self.node.liar.lie if self.node.liar else None
        if not self.node.is_up:
            raise self._silent()
        if self._is_lost() or lie is Lie.STALLS:
            await asyncio.sleep(seconds)
            raise self._silent()
        if lie is Lie.FAILS:
            raise PeerRefused(f"node {self.node.node_id}", "envelopes", "INTERNAL")
        await asyncio.sleep(2.0 if lie is Lie.DRIPS else 0.0)
        await self.world.travel()

    async def _until_linked(self, seconds: float) -> None:
        """Wait for a link that is cut; nothing is lost if it is mended in time."""
        deadline = self.world.seconds() + seconds
        while self._is_lost():
            if self.world.seconds() > deadline:
                raise self._silent()
            await asyncio.sleep(1.0)

    def _check(self, life: Iterable[Any]) -> None:
        if self.node.tasks is not life:
            raise self._silent()

    def _check_filled(
        self, filled: Sequence[tuple[int, int]], originator_id: int, after_id: int
    ) -> None:
        below = [each for of, each in filled if of == originator_id and each <= after_id]
        if below:
            refusal = PeerRefused(f"node {self.node.node_id}", "the same log", "a gap was filled")
            refusal.cursor = {originator_id: min(below) - 1}
            raise refusal

    def _is_lost(self) -> bool:
        return self.world.is_cut(self.reader.node_id, self.node.node_id)

    def _silent(self) -> PeerSilent:
        return PeerSilent(f"node {self.node.node_id}", "an answer", "none")
