"""Asks other nodes as a stranger does, without a token: what clients see (XIP-49 §3.2.7).

Theory of operation. Each round with a node is one connection and two queries: a page of the chain,
and topics of what this node holds of others. This finds a node that shows peers and clients
different things: it cannot distinguish the watchdog from a client. Late answers, errors and silence
of these queries are reported as those of replication are; what a limit refuses is no failure.

The loop only waits: the database and the signatures take threads. Rounds with several nodes run at
the same time, so that a silent node holds up no other; two rounds with one node never overlap.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from chainkit.errors import ChainkitError, MalformedData
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.methods import QUERY_ENVELOPES
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import LIMIT_CODES
from chainkit.types import Node, Place
from chainkit_node.peers.client import Peer, PeerRefused, PeerSilent
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import PeerFaults, end_all
from chainkit_node.replicating.intake import SafetyReports, Source, Takes
from chainkit_node.replicating.liveness import Liveness, LivenessReports
from chainkit_node.watching.comparing import (
    Findings,
    Keys,
    Question,
    chain_question,
    compare_served,
    read_answer,
)
from chainkit_node.watching.rounds import Rounds

LOOK_SECONDS: Final = 1.0
"""How often the due nodes are looked up."""


class OwnRows(Protocol):
    """The node's own envelopes; asks a database, so used in threads. Raises StoreError."""

    chain_ids: frozenset[int]
    """The chain's originators."""

    def final_ids(self) -> Mapping[int, int]:
        """Return the highest final sequence id of each of the chain's originators, 0 for none."""

    def final_after(self, originator_id: int, after: int) -> Mapping[Place, bytes]:
        """Return a page of final envelopes of the chain behind a sequence id."""

    def held(self, places: Collection[Place]) -> Mapping[Place, bytes]:
        """Return the envelopes under some places, of the chain only those that are final."""

    def topic_question(self, chance: random.Random) -> Question | None:
        """Ask for topics of some envelopes that are held; None where there are none."""


class Reports(LivenessReports, SafetyReports, Protocol):
    """Takes reports of every kind; on any thread, and without waiting."""


@dataclass(frozen=True, slots=True)
class Watched:
    """An answer that was compared, for the metrics."""

    peer_id: int
    findings: Findings


class Watchdog:
    """Used on the event loop's thread; ``run`` once."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        rows: OwnRows,
        intake: Takes,
        reports: Reports,
        rounds: Rounds,
        clock: Callable[[], float],
        watched: Callable[[Watched], None],
        chance: random.Random,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Take the registry's nodes, a function that connects as a stranger, and what is held.

        ``clock`` is in seconds and only grows; ``watched`` gets each answer.
        """
        self._listing = listing
        self._connect = connect
        self._rows = rows
        self._intake = intake
        self._reports = reports
        self._rounds = rounds
        self._clock = clock
        self._watched = watched
        self._chance = chance
        self._look_seconds = look_seconds
        self._liveness = Liveness(reports, clock)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._faults = PeerFaults(
            "watch_failed",
            "could not be watched as clients see it",
            "it is asked again in the next round",
        )
        self._lacking = PeerFaults(
            "peer_lacks",
            "signs no payload of the chain",
            "these are compared by their transactions",
            logging.INFO,
        )

    async def run(self) -> None:
        """Watch until it is cancelled."""
        try:
            while True:
                self._begin_due(self._listing())
                await asyncio.sleep(self._look_seconds)
        finally:
            await end_all(self._running.values())

    def _begin_due(self, listing: Listing) -> None:
        others = [
            each
            for each, node in listing.nodes.items()
            if node.is_enabled and each != listing.own_id
        ]
        for each in self._rounds.due(others, self._clock()):
            if each not in self._running:
                task = asyncio.create_task(self._round(listing, each), name=f"watch of {each}")
                self._running[each] = task
                task.add_done_callback(partial(self._end, each))

    def _end(self, node_id: int, _task: asyncio.Task[None]) -> None:
        self._running.pop(node_id)

    async def _round(self, listing: Listing, node_id: int) -> None:
        try:
            peer = self._connect(listing.nodes[node_id])
            try:
                await self._watch(peer, listing, node_id)
            finally:
                await peer.close()
        except ChainkitError as error:
            self._faults.failed(node_id, error)
        except Exception as error:
            # A bug of this node ends no other round, and is never reported as the peer's.
            fault = ChainkitError(f"node {node_id}", "a comparison", repr(error))
            self._faults.failed(node_id, fault)
        else:
            self._faults.passed(node_id)

    async def _watch(self, peer: Peer, listing: Listing, node_id: int) -> None:
        final_ids = await asyncio.to_thread(self._rows.final_ids)
        for question in (
            chain_question(final_ids, self._chance),
            await asyncio.to_thread(self._rows.topic_question, self._chance),
        ):
            if question is not None:
                findings = await self._ask(peer, listing, node_id, question)
                await self._follow_up(findings, listing, node_id)

    async def _ask(
        self, peer: Peer, listing: Listing, node_id: int, question: Question
    ) -> Findings:
        request, asked_at = question.request(), self._clock()
        patience = self._liveness.reachability.patience(node_id)
        try:
            answer = await peer.call(QUERY_ENVELOPES, request.SerializeToString(), patience)
            seconds = self._clock() - asked_at
            findings = await asyncio.to_thread(
                self._compared, answer, question, _keys(listing, node_id, self._rows.chain_ids)
            )
        except PeerSilent:
            self._liveness.silent(node_id, request, asked_at)
            raise
        except (PeerRefused, MalformedData) as error:
            is_rightful = isinstance(error, PeerRefused) and error.code in LIMIT_CODES
            self._liveness.refused(node_id, request, asked_at, is_rightful)
            raise
        self._liveness.answered(node_id, request, seconds)
        return findings

    def _compared(self, answer: bytes, question: Question, keys: Keys) -> Findings:
        served = read_answer(answer, question)
        # Read after the answer: so nothing is missed that became final meanwhile.
        own = dict(self._rows.held([each.place for each in served]))
        wanted = question.picked
        if question.originator_id is not None:
            [after] = question.cursor.values()
            wanted = tuple(self._rows.final_after(question.originator_id, after))
        return compare_served(served, own, wanted, keys)

    async def _follow_up(self, findings: Findings, listing: Listing, node_id: int) -> None:
        self._watched(Watched(node_id, findings))
        if findings.unsigned:
            lack = ChainkitError("proof of a payload", "the node's signature", "none")
            self._lacking.failed(node_id, lack)
        kind = Misbehavior.BLOCKCHAIN_INCONSISTENCY
        for envelope in findings.inconsistent:
            self._reports.submit_own_safety(node_id, kind, [envelope])
        for each in findings.differing:
            originator = listing.nodes[each.place[0]]
            source = Source(originator.node_id, originator.signing_key, is_direct=False)
            await asyncio.to_thread(self._intake.take, [each.envelope], source)
        if findings.omitted:
            shown = ", ".join(f"{last} of originator {each}" for each, last in findings.omitted)
            text = f"node {node_id} serves later envelopes, but not {shown}"
            fields = {"peer_id": node_id, "envelopes": len(findings.omitted)}
            log_event(LogEvent("peer_omits", text, fields, logging.WARNING))


def _keys(listing: Listing, node_id: int, chain_ids: Collection[int]) -> Keys:
    originators = {each: node.signing_key for each, node in listing.nodes.items()}
    return Keys(originators[node_id], chain_ids, originators)
