"""Asks other nodes for the reports about this node that they host (XIP-49 §3.2.8).

A node whose clock or key is wrong may be the last to learn what it signed. A report counts as a
proof only where its evidence proves the failure by this node's own judgement: what a peer says
without evidence is a claim, which alarms nobody.

Each node is asked for one page a round, and a bounded number of reports of the page is judged. The
node is asked without a token: a token of a wrong clock is refused. A node of another make need not
host reports, and one that does not answer is reported by the streams.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.misbehavior.evidence import Judgement, Weight, judge_safety
from chainkit.misbehavior.report import parse_unsigned
from chainkit.protocol.methods import QUERY_REPORTS
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.types import NANOSECONDS_PER_SECOND, Node
from chainkit_node.peers.client import Peer, PeerRefused
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import PeerFaults
from chainkit_node.watching.rounds import Rounds

LOOK_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 10.0

MOST_JUDGED: Final = 100
"""Reports about this node that one round judges: the next round goes on."""
MOST_PROOFS: Final = 1_000
"""Proofs of all nodes together that are remembered."""
MOST_REPORT_BYTES: Final = 8 << 20
"""Evidence of two of the largest envelopes: nobody hosts a larger report."""

NEW_NS: Final = 24 * 60 * 60 * NANOSECONDS_PER_SECOND
"""How long a proof is new, by the time at which its host stored it."""


@dataclass(slots=True)
class Hosted:
    """The reports about this node that another node hosts, as far as they were read."""

    proofs: set[bytes] = field(default_factory=set)
    """The failures that its reports prove, 32 bytes each; MOST_PROOFS at most."""
    claimed: int = 0
    """Reports that prove nothing."""
    after_ns: int = 0
    """The host's time of the last report that was read."""


@dataclass(slots=True)
class _Page:
    """A page of a host's reports, taken apart in a thread."""

    proofs: list[tuple[int, Judgement]] = field(default_factory=list)
    """With the host's time of each."""
    claimed: int = 0
    after_ns: int = 0


class ReportsAboutSelf:
    """``new_proofs`` is for any thread; all else for the event loop's thread."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        rounds: Rounds,
        clock: Callable[[], float],
        clock_ns: Callable[[], int],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Take the registry's nodes, and a function that connects to a node without a token.

        ``clock`` is in seconds and only grows; ``clock_ns`` counts from 1970.
        """
        self._listing = listing
        self._connect = connect
        self._rounds = rounds
        self._clock = clock
        self._clock_ns = clock_ns
        self._look_seconds = look_seconds
        self._hosted: dict[int, Hosted] = {}
        self._faults = PeerFaults(
            "reports_unread",
            "could not be asked for reports about this node",
            "it is asked again in the next round",
            logging.INFO,
        )
        self._proofs: dict[bytes, int] = {}
        """The newest host's time of each proved failure."""

    def hosted(self) -> Mapping[int, Hosted]:
        """Return the reports about this node by their host's id; nothing for who has none."""
        found = self._hosted.items()
        return {each: hosted for each, hosted in found if hosted.proofs or hosted.claimed}

    def new_proofs(self) -> int:
        """Count the proved failures of which a host stored a report within the last day."""
        since = self._clock_ns() - NEW_NS
        return sum(time_ns > since for time_ns in list(self._proofs.values()))

    async def run(self) -> None:
        """Ask until it is cancelled."""
        while True:
            listing = self._listing()
            nodes = {} if listing.own_id is None else listing.nodes
            others = [
                each for each, node in nodes.items() if node.is_enabled and each != listing.own_id
            ]
            self._hosted = {each: self._hosted.get(each, Hosted()) for each in others}
            due = self._rounds.due(others, self._clock())
            await asyncio.gather(*(self._ask(listing, each) for each in due))
            await asyncio.sleep(self._look_seconds)

    async def _ask(self, listing: Listing, host_id: int) -> None:
        hosted = self._hosted[host_id]
        try:
            page = await self._page(listing, host_id, hosted.after_ns)
        except Exception as error:
            # A bug of this node ends no other task, and is never reported as the peer's.
            if not (isinstance(error, PeerRefused) and error.code is grpc.StatusCode.UNIMPLEMENTED):
                self._faults.failed(host_id, error)
            return
        self._faults.passed(host_id)
        hosted.claimed += page.claimed
        hosted.after_ns = page.after_ns
        for time_ns, judgement in page.proofs:
            self._note(host_id, hosted, time_ns, judgement)

    async def _page(self, listing: Listing, host_id: int, after_ns: int) -> _Page:
        request = message_api_pb2.QueryMisbehaviorReportsRequest(after_ns=after_ns)
        peer = self._connect(listing.nodes[host_id])
        try:
            answer = await peer.call(QUERY_REPORTS, request.SerializeToString(), ANSWER_SECONDS)
        finally:
            await peer.close()
        return await asyncio.to_thread(self._read, answer, listing, after_ns)

    def _read(self, answer: bytes, listing: Listing, after_ns: int) -> _Page:
        """Judge what a page says about this node. Raises MalformedData for other bytes."""
        try:
            reports = message_api_pb2.QueryMisbehaviorReportsResponse.FromString(answer).reports
        except DecodeError as error:
            raise MalformedData("answer", "reports", "other bytes") from error
        page, judged = _Page(after_ns=after_ns), 0
        for each in reports:
            if each.server_time_ns <= page.after_ns:
                raise MalformedData("reports", f"one after {page.after_ns}", each.server_time_ns)
            page.after_ns = each.server_time_ns
            judgement = self._judged(each.unsigned_misbehavior_report, listing)
            if judgement is None:
                continue
            if judgement.weight is Weight.PROVED:
                page.proofs.append((each.server_time_ns, judgement))
            else:
                page.claimed += 1
            if (judged := judged + 1) >= MOST_JUDGED:
                break
        return page

    def _judged(self, data: bytes, listing: Listing) -> Judgement | None:
        """Judge a report; return None where it is not about this node."""
        if len(data) > MOST_REPORT_BYTES:
            return None
        try:
            report = parse_unsigned(data)
        except MalformedData:
            # Bytes that are no report accuse nobody.
            return None
        if report.node_id != listing.own_id:
            return None
        keys = {each: node.signing_key for each, node in listing.nodes.items()}
        return judge_safety(report, keys, self._clock_ns())

    def _note(self, host_id: int, hosted: Hosted, time_ns: int, judgement: Judgement) -> None:
        is_known = judgement.subject in self._proofs
        if not is_known and len(self._proofs) >= MOST_PROOFS:
            return
        hosted.proofs.add(judgement.subject)
        newest = max(self._proofs.get(judgement.subject, 0), min(time_ns, self._clock_ns()))
        self._proofs[judgement.subject] = newest
        if not is_known:
            text = f"node {host_id} hosts a proof against this node: {judgement.reason}"
            event = LogEvent("accused_elsewhere", text, {"peer_id": host_id}, logging.ERROR)
            log_event(event)
