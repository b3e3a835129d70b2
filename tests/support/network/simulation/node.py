"""A simulated node: the product's work among others, over logs in memory and a simulated chain."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from chainkit.errors import ChainkitError
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.received_batch import compare_batch
from chainkit.misbehavior.report import LivenessRequest, parse_unsigned, safety_report
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import sign_originator_envelope
from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.received_envelope import ReceivedEnvelope, read_received
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    NANOSECONDS_PER_SECOND,
    BlockReference,
    Node,
)
from chainkit_node.peers.directory import Listing
from chainkit_node.replicating.dependencies import MOST_WAITING, KnownLogs
from chainkit_node.replicating.dependency_keeper import DependencyKeeper
from chainkit_node.replicating.intake import Source, Taken
from chainkit_node.replicating.own_log import OwnLog
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.repairer import Repairer
from chainkit_node.replicating.replicator import Replicator
from chainkit_node.types import HeldRanges
from chainkit_node.watching.comparing import PAGE as WATCHED_PAGE
from chainkit_node.watching.rounds import Rounds
from chainkit_node.watching.watchdog import Watchdog
from support.network.memory_ranges import memory_ranges
from support.network.originator import BEGIN_NS, SECOND_NS, MemoryLog, Originator
from support.network.simulation.chain import Block, ChainPayload
from support.network.simulation.lies import Liar, page, signed
from support.network.simulation.peer import SimulatedPeer
from support.network.simulation.rows import CHAIN_IDS, SimulatedRows
from support.network.simulation.world import World

LOOK_SECONDS = 5.0
"""Seldom: most of a story's cost are looks that find nothing new."""

WATCH_SECONDS = 120.0
"""Between two rounds of the watchdog with a node."""

WATCH_LOOK_SECONDS = 10.0


@dataclass(frozen=True)
class Accusation:
    """A report of a node."""

    reporter_id: int
    node_id: int
    misbehavior: Misbehavior
    weight: Weight


@cache
def _key(node_id: int) -> SigningKey:
    return SigningKey(node_id.to_bytes(32, "big"))


def registry_entry(node_id: int, is_enabled: bool = True, port: int = 1) -> Node:
    """Return what the registry says of a simulated node."""
    return Node(node_id, _key(node_id).public_key, f"http://{node_id}:{port}", is_enabled)


@dataclass
class SimulatedNode:
    """One node, with everything that outlives a crash."""

    world: World
    node_id: int
    clock_ahead: float = 0.0
    """Seconds by which its clock is ahead of the true time."""
    lag: float = 0.0
    """Seconds by which it sees the chain later than others."""
    port: int = 1
    """Where it can be reached, whatever the registry says."""
    watches: bool = True
    """It runs a watchdog."""
    liar: Liar | None = None
    logs: dict[int, MemoryLog] = field(default_factory=dict)
    disputed: set[tuple[int, int]] = field(default_factory=set)
    filled: list[tuple[int, int]] = field(default_factory=list)
    """Envelopes that were stored below others, in the order in which they came."""
    accusations: list[Accusation] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Errors that no peer can cause."""
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    highest_of_chain: int = 0
    """The most payloads of the chain that it has seen at a time."""
    vouched: dict[ChainPayload, bytes] = field(default_factory=dict)
    """Payloads of the chain that it has signed."""

    def __post_init__(self) -> None:
        self.key = _key(self.node_id)
        self.signs = Originator(self.node_id, self.key)
        self.changed = asyncio.Event()
        self.own_log: OwnLog | None = None

    # ---------------------------------------------------------------- life

    @property
    def is_up(self) -> bool:
        return bool(self.tasks)

    def entry(self, is_enabled: bool = True) -> Node:
        """The entry that the registry should have of it."""
        return registry_entry(self.node_id, is_enabled, self.port)

    def start(self) -> None:
        """Begin with what is stored."""
        chance = random.Random(self.world.chance.random())
        self.dependencies = DependencyKeeper(
            self, self, self.world.seconds, self._dropped, LOOK_SECONDS
        )
        self.own_log = OwnLog(self.listing, self._connect, self, None)
        repairer = Repairer(
            self.listing,
            self._connect,
            self,
            self,
            self,
            self.world.seconds,
            self.now_ns,
            lambda repair: None,
            self.dependencies.compared,
            lambda originator_id: self.replicator.delivery(originator_id),
            chance,
            LOOK_SECONDS,
        )
        self.replicator = Replicator(
            self.listing,
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
        works = [self.own_log.run(), self.replicator.run(), repairer.run()]
        works.append(self.dependencies.run(repairer.hurry))
        if self.watches:
            works.append(self._watchdog(chance).run())
        self.tasks = [asyncio.ensure_future(each) for each in works]

    def _watchdog(self, chance: random.Random) -> Watchdog:
        return Watchdog(
            self.listing,
            self._connect_as_stranger,
            SimulatedRows(self),
            self,
            self,
            Rounds(chance, WATCH_SECONDS),
            self.world.seconds,
            lambda watched: None,
            chance,
            WATCH_LOOK_SECONDS,
        )

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
        keys = self.world.keys()
        for originator_id, log in self.logs.items():
            key = keys[originator_id]
            copies[originator_id] = MemoryLog()
            for envelope in log.envelopes():
                copies[originator_id].store(read_received(envelope, originator_id, key))
        return copies

    def now_ns(self) -> int:
        return self.world.true_ns() + int(self.clock_ahead * SECOND_NS)

    def recent(self) -> list[ReceivedEnvelope]:
        """The last envelopes of the other nodes of the registry, as after a restart."""
        listing = self.listing()
        return [
            read_received(envelope, node_id, node.signing_key)
            for node_id, node in listing.nodes.items()
            if node_id != listing.own_id
            for envelope in self.log(node_id).envelopes()[-MOST_WAITING:]
        ]

    def known(self) -> KnownLogs:
        listing, final_ns = self.listing(), self.block().final.seconds * NANOSECONDS_PER_SECOND
        held = {each: self.last_id(each) for each in self.world.nodes}
        held[BLOCKCHAIN_ORIGINATOR_ID] = self.highest_of_chain
        knows_own = self.own_log is not None and self.own_log.is_known
        return KnownLogs(held, CHAIN_IDS, listing.nodes.keys(), listing.own_id, final_ns, knows_own)

    def _dropped(self) -> None:
        raise AssertionError("a story has few envelopes")

    def _connect(self, node: Node) -> SimulatedPeer:
        return SimulatedPeer(self.world, self, self.world.nodes[node.node_id], node.http_address)

    def _connect_as_stranger(self, node: Node) -> SimulatedPeer:
        peer = self.world.nodes[node.node_id]
        return SimulatedPeer(self.world, self, peer, node.http_address, is_stranger=True)

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    # ---------------------------------------------------------------- the chain

    def block(self) -> Block:
        """The head of the chain, as far as this node has seen it."""
        block = self.world.chain.seen(self.world.seconds() - self.lag)
        self.highest_of_chain = max(self.highest_of_chain, len(block.payloads))
        return block

    def listing(self) -> Listing:
        """The registry as this node has followed it."""
        block = self.block()
        own_id = self.node_id if self.node_id in block.nodes else None
        return Listing(block.nodes, own_id, BlockReference(block.number, block.hash))

    def knows_enabled(self, node_id: int) -> bool:
        """Whether the registry lists a node as enabled, as far as this one has followed it."""
        entry = self.block().nodes.get(node_id)
        return entry is not None and entry.is_enabled

    def vouches(self, payload: ChainPayload) -> bytes:
        """Sign a payload of the chain."""
        if payload not in self.vouched:
            self.vouched[payload] = sign_originator_envelope(
                payload.unsigned, payload.transaction_hash, self.key
            )
        return self.vouched[payload]

    # ---------------------------------------------------------------- its own log

    def log(self, originator_id: int) -> MemoryLog:
        return self.logs.setdefault(originator_id, MemoryLog())

    def publish(self) -> bytes:
        """Originate a message, as the sequencer does. Raises NotReady."""
        assert self.own_log is not None
        if not self.knows_enabled(self.node_id):
            raise NotReady(f"node {self.node_id}", "an enabled node", "none")
        self.own_log.check()
        last = self.log(self.node_id).last()
        sequence_id = last.sequence_id + 1 if last else 1
        now_ns = max(last.originator_ns + 1 if last else 0, self.now_ns())
        seconds = (now_ns - BEGIN_NS) / SECOND_NS
        envelope = signed(self.signs, self.liar, sequence_id, seconds, self._seen())
        self.log(self.node_id).store(self.signs.received(envelope))
        self._tell()
        return envelope

    def _seen(self) -> dict[int, int]:
        """Some ids of others that a client has seen here, those of the chain at the head too."""
        chance = self.world.chance
        last = {each: self.last_id(each) for each in self.logs if each != self.node_id}
        last[BLOCKCHAIN_ORIGINATOR_ID] = len(self.block().payloads)
        others = [each for each in last if last[each]]
        some = chance.sample(others, chance.randint(0, len(others)))
        return {each: chance.randint(1, last[each]) for each in some}

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
        judged = compare_batch(received, log, self.now_ns(), source.is_direct)
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

    def unexplained(self, originator_id: int) -> list[range]:
        """The missing ids below the last of a log."""
        ids = self.log(originator_id).ids()
        pairs = pairwise([0, *ids])
        return [range(one + 1, other) for one, other in pairs if one + 1 < other]

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
        judgement = judge_safety(parse_unsigned(data), self.world.keys(), self.now_ns())
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
        if originator_id == BLOCKCHAIN_ORIGINATOR_ID:
            block = self.block()
            payloads = self.liar.of_chain(block) if self.liar else block.payloads
            served = payloads[after_id : after_id + WATCHED_PAGE]
            return [self.vouches(each) for each in served], after_id + len(served)
        liar = self.liar if originator_id == self.node_id else None
        return page(self.log(originator_id), liar, reader_id, after_id)
