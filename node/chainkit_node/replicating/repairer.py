"""Compares this node's logs with other nodes', and fetches what it lacks (XIP-49 §3.2.6, §3.2.7).

Each log is compared with its originator, and with one other node that is picked at random: so every
two nodes meet in time, and n nodes cost each other 2 n questions a round. A node that has just
begun to answer is compared first.

An envelope that both nodes hold differently is fetched, and becomes evidence against its
originator. The other node fetches what it lacks. An envelope that an open stream is about to bring
is left to the stream.

A peer that answers no comparison owes none: only this network's nodes have the method. It is asked
by QueryEnvelopes, as each node is, for what this node lacks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from chainkit.errors import ChainkitError, MalformedAnswer
from chainkit.misbehavior.received_batch import may_have_expired
from chainkit.protocol.log_comparison import Differences
from chainkit.protocol.methods import COMPARE_RANGES, QUERY_ENVELOPES
from chainkit.service.grpc_methods import Unary
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import LIMIT_CODES
from chainkit.types import Node
from chainkit_node.peers.client import Peer, PeerRefused
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import PeerFaults, end_all
from chainkit_node.repairing.comparison import ComparedLog, compare, compare_by_queries, fetch
from chainkit_node.replicating.delivery import Delivery, StreamsFirst
from chainkit_node.replicating.dependencies import Compared
from chainkit_node.replicating.intake import Source, Taken, Takes

ROUND_SECONDS: Final = 60.0
"""Between two comparisons of the same log with its originator, or with another node."""

LOOK_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 10.0

MOST_FETCHED: Final = 10_000
"""Envelopes that one comparison fetches: the next comparison goes on."""


class Gaps(Protocol):
    """The states of missing envelopes; used in threads, because the methods ask a database."""

    def unexplained(self, originator_id: int) -> Sequence[range]:
        """Return the missing ids of an originator that nobody has explained."""

    def answered(
        self, originator_id: int, through: int, held: Sequence[range], expired: Sequence[range]
    ) -> None:
        """Record an originator's answer about its own log, up to an id.

        The originator serves ``held``, calls ``expired`` so, and lacks all other ids.
        """


@dataclass(frozen=True, slots=True)
class Repair:
    """The outcome of one comparison that brought envelopes."""

    peer_id: int
    originator_id: int
    taken: Taken


@dataclass(frozen=True, slots=True)
class LastComparison:
    """How the last comparison with a node ended, for the node's status."""

    at: float
    """A moment of the repairer's clock."""
    logs: int
    """How many logs were to be compared."""
    error: str | None
    """Why the comparison failed; None where it succeeded."""


class Repairer:
    """Used on the event loop's thread; ``run`` once."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        log: ComparedLog,
        intake: Takes,
        gaps: Gaps,
        clock: Callable[[], float],
        clock_ns: Callable[[], int],
        repaired: Callable[[Repair], None],
        compared: Callable[[Compared], None],
        delivery: Callable[[int], Delivery],
        chance: random.Random,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Take the registry's nodes, a function that connects to a node, and two callbacks.

        ``clock`` is in seconds and only grows; ``clock_ns`` counts from 1970. ``repaired`` gets
        each repair, ``compared`` each comparison that ended; ``delivery`` tells what the streams
        of an originator are doing.
        """
        self._listing = listing
        self._connect = connect
        self._log = log
        self._intake = intake
        self._gaps = gaps
        self._clock = clock
        self._clock_ns = clock_ns
        self._repaired = repaired
        self._compared = compared
        self._streams_first = StreamsFirst(delivery)
        self._chance = chance
        self._look_seconds = look_seconds
        self._next_round = 0.0
        self._hurried: set[int] = set()
        self._wanted: dict[int, dict[int, None]] = {}
        """Logs to compare with each node, in order."""
        self._running: dict[int, asyncio.Task[None]] = {}
        self._faults = PeerFaults(
            "comparison_failed",
            "could not be compared with",
            "it is tried again in the next round",
        )
        self._lacking = PeerFaults(
            "peer_lacks",
            "answers no comparison of logs",
            "queries are asked instead",
            logging.INFO,
        )
        self._last: dict[int, LastComparison] = {}
        self._highest: dict[int, int] = {}

    def comparisons(self) -> Mapping[int, LastComparison]:
        """Return how the last comparison with each node ended, by its id."""
        return dict(self._last)

    def highest(self) -> Mapping[int, int]:
        """Return the highest sequence id of each originator as the originator last answered."""
        return dict(self._highest)

    def hurry(self, node_id: int) -> None:
        """Compare all logs with a node soon: it has just begun to answer."""
        self._hurried.add(node_id)

    async def run(self) -> None:
        """Compare and repair until it is cancelled."""
        try:
            while True:
                listing = self._listing()
                hurried, self._hurried = self._hurried, set()
                self._want((each, log) for each in sorted(hurried) for log in sorted(listing.nodes))
                if self._clock() >= self._next_round:
                    self._next_round = self._clock() + ROUND_SECONDS
                    self._want(self._pairs(listing))
                self._begin(listing)
                await asyncio.sleep(self._look_seconds)
        finally:
            await end_all(self._running.values())

    def _pairs(self, listing: Listing) -> list[tuple[int, int]]:
        """Return which node is asked about which log in this round."""
        others = [
            each
            for each, node in sorted(listing.nodes.items())
            if node.is_enabled and each != listing.own_id
        ]
        pairs = [(each, each) for each in others]
        for originator_id in sorted(listing.nodes):
            rest = [each for each in others if each != originator_id]
            if rest:
                pairs.append((self._chance.choice(rest), originator_id))
        return pairs

    def _want(self, pairs: Iterable[tuple[int, int]]) -> None:
        for peer_id, originator_id in pairs:
            self._wanted.setdefault(peer_id, {})[originator_id] = None

    def _begin(self, listing: Listing) -> None:
        """Compare with each peer in its own task: a slow peer holds up no other comparison."""
        self._running = {each: task for each, task in self._running.items() if not task.done()}
        for peer_id in sorted(self._wanted.keys() - self._running.keys()):
            logs, node = self._wanted.pop(peer_id), listing.nodes.get(peer_id)
            if node is not None and node.is_enabled:
                # A reorg may have taken a node out of the registry since its log was wanted.
                listed = [each for each in logs if each in listing.nodes]
                self._running[peer_id] = asyncio.create_task(
                    self._compare_with(node, listed, listing.nodes),
                    name=f"comparison with node {peer_id}",
                )

    async def _compare_with(
        self, node: Node, originator_ids: Sequence[int], nodes: Mapping[int, Node]
    ) -> None:
        try:
            peer = self._connect(node)
            try:
                for originator_id in originator_ids:
                    await self._repair(peer, node.node_id, nodes[originator_id])
            finally:
                await peer.close()
        except ChainkitError as error:
            # Not reported: the streams report a silent node, and an honest node contradicts itself,
            # too, while its log is repaired.
            self._note(node.node_id, len(originator_ids), error)
        except Exception as error:
            # A bug of this node ends no other comparison.
            fault = ChainkitError("comparison", "an outcome", repr(error))
            self._note(node.node_id, len(originator_ids), fault)
        else:
            self._note(node.node_id, len(originator_ids), None)

    async def _repair(self, peer: Peer, peer_id: int, originator: Node) -> None:
        source = Source(originator.node_id, originator.signing_key, is_direct=False)

        async def ask(request: bytes) -> bytes:
            return await peer.call(COMPARE_RANGES, request, ANSWER_SECONDS)

        async def query(request: bytes) -> bytes:
            return await peer.call(QUERY_ENVELOPES, request, ANSWER_SECONDS)

        begun_at = self._clock()
        found, is_sure = await self._compare(ask, query, peer_id, originator.node_id)
        if peer_id == originator.node_id:
            self._highest[peer_id] = found.highest_there
        wanted, is_all = await self._to_fetch(found, originator.node_id)
        taken = Taken(0, 0, 0, 0, 0)
        async for page in fetch(query, originator.node_id, wanted):
            taken = taken + await asyncio.to_thread(self._intake.take, page, source)
        # Only the originator's own log shows gaps: another node may lack an envelope itself.
        if peer_id == originator.node_id:
            await asyncio.to_thread(
                self._gaps.answered,
                *(originator.node_id, found.compared_through),
                *(found.only_there, found.expired_there),
            )
        is_settled = is_sure and is_all and found.is_complete and not (taken.new or taken.late)
        highest = found.highest_there
        compared = Compared(peer_id, originator.node_id, begun_at, highest, is_settled)
        self._compared(compared)
        if taken.new or taken.late or taken.disputed:
            self._repaired(Repair(peer_id, originator.node_id, taken))
            text = (
                f"took from node {peer_id} of originator {originator.node_id}: "
                f"{taken.new + taken.late} missing, {taken.disputed} others"
            )
            log_event(LogEvent("log_repaired", text, dict(taken.envelopes)))

    async def _compare(
        self, ask: Unary, query: Unary, peer_id: int, originator_id: int
    ) -> tuple[Differences, bool]:
        """Compare a log; return whether what the peer lacks cannot have expired there, too."""
        try:
            found = await compare(ask, self._log, originator_id)
        except (PeerRefused, MalformedAnswer) as error:
            if isinstance(error, PeerRefused) and error.code in LIMIT_CODES:
                raise
            self._lacking.failed(peer_id, error)
        else:
            self._lacking.passed(peer_id)
            return found, True
        missing: Sequence[range] = ()
        if peer_id == originator_id:
            missing = await asyncio.to_thread(self._gaps.unexplained, originator_id)
        some = list(_first(missing, MOST_FETCHED))
        found, last = await compare_by_queries(query, self._log, originator_id, some)
        if some != list(missing):
            found = replace(found, compared_through=min(found.through, some[-1][-1]))
        return found, not may_have_expired(last, self._clock_ns())

    async def _to_fetch(self, found: Differences, originator_id: int) -> tuple[list[range], bool]:
        """Return the runs to fetch: what is missing, and what the peer holds differently.

        Tell also whether that is all, and nothing is left to an open stream.
        """
        runs = [*found.only_there, *found.differing, *found.disputed_there]
        held = await asyncio.to_thread(self._intake.last_id, originator_id)
        is_left = False
        if found.is_complete and found.highest_there > held:
            is_left = self._streams_first.leaves(originator_id, held, found.highest_there)
            if not is_left:
                runs.append(range(held + 1, found.highest_there + 1))
        return list(_first(sorted(runs, key=lambda run: run.start), MOST_FETCHED)), not is_left

    def _note(self, node_id: int, logs: int, error: ChainkitError | None) -> None:
        self._last[node_id] = LastComparison(
            self._clock(), logs, None if error is None else str(error)
        )
        if error is None:
            self._faults.passed(node_id)
        else:
            self._faults.failed(node_id, error)


def _first(runs: Iterable[range], most: int) -> Iterable[range]:
    """Return the first of some runs, with up to ``most`` ids together."""
    for run in runs:
        if most <= 0:
            return
        yield run[:most]
        most -= len(run)
