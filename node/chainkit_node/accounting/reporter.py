"""Makes this node's payer reports, and asks other nodes for theirs and for signatures (ADR 56).

One task does both, one after the other: nothing else writes reports. A node asks every node about
every originator, so that reports and signatures of a node that is away reach all others.

A report that was signed before a database was restored is with other nodes. So no report is made
before more than half of the enabled nodes have answered, with this node: any report that enough
nodes have signed is with one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData, StoreError
from chainkit.protocol.methods import QUERY_PAYER_REPORTS
from chainkit.protocol.payer_reports import needed_signatures, parsed_report
from chainkit.protocol.proto import node_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import PayerReports
from chainkit.service.refusals import NotReady
from chainkit.types import NANOSECONDS_PER_SECOND, Node
from chainkit_node.accounting.books import Books, Outcome, Standing
from chainkit_node.peers.client import Peer, PeerRefused
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import PeerFaults
from chainkit_node.watching.rounds import Rounds

REPORT_SECONDS: Final = 12 * 60 * 60.0
"""How long an envelope waits for its report: twice a day (XIP-69)."""

MOST_ROUND_SECONDS: Final = 600.0
"""Between two questions to the same node, on average."""

_LEAST_ROUND_SECONDS: Final = 1.0
_ROUNDS_PER_REPORT: Final = 20
_MOST_LOOK_SECONDS: Final = 5.0
"""How often it is seen, at least, whether a node is to be asked or a report to be made."""
_ANSWER_SECONDS: Final = 10.0
_MOST_PAGES: Final = 10
"""Answers of one node that one round takes."""


def round_seconds(report_seconds: float) -> float:
    """Return how often other nodes are asked, by how often a report is made; 0 for never."""
    if not report_seconds:
        return MOST_ROUND_SECONDS
    wanted = report_seconds / _ROUNDS_PER_REPORT
    return min(max(wanted, _LEAST_ROUND_SECONDS), MOST_ROUND_SECONDS)


class PayerReporter:
    """Used on the event loop's thread; ``run`` once."""

    def __init__(
        self,
        books: Books,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        may_report: Callable[[], None],
        rounds: Rounds,
        clock: Callable[[], float],
        report_seconds: float = REPORT_SECONDS,
    ) -> None:
        """Take the books, the registry's nodes, and a function that connects to a node.

        ``may_report`` raises NotReady while this node does not know its own log. ``clock`` is in
        seconds and only grows. ``report_seconds`` is how long an envelope waits; 0 for no reports.
        """
        self._books = books
        self._listing = listing
        self._connect = connect
        self._may_report = may_report
        self._rounds = rounds
        self._clock = clock
        self._look_seconds = min(round_seconds(report_seconds) / 2, _MOST_LOOK_SECONDS)
        self._most_wait_ns = round(report_seconds * NANOSECONDS_PER_SECOND)
        self._answered: set[int] = set()
        self._standing = Standing()
        self._is_looked_up = False
        self._faults = PeerFaults(
            "payer_reports_unread",
            "could not be asked for payer reports",
            "it is asked again in the next round",
            logging.INFO,
        )

    def standing(self) -> Standing:
        """Return what an operator should know of the reports, as of the last round."""
        return self._standing

    async def run(self) -> None:
        """Ask, and make reports, until it is cancelled."""
        while True:
            # The indexer logs that a database is away.
            with suppress(StoreError):
                await self._look(self._listing())
            await asyncio.sleep(self._look_seconds)

    async def _look(self, listing: Listing) -> None:
        enabled = {each for each, node in listing.nodes.items() if node.is_enabled}
        due = list(self._rounds.due(enabled - {listing.own_id}, self._clock()))
        for each in due:
            try:
                await self._ask(listing, each)
            except StoreError:
                raise
            except Exception as error:
                if not _lacks_method(error):
                    # A bug of this node ends no other work, and is never reported as the peer's.
                    self._faults.failed(each, error)
                    continue
            self._answered.add(each)
            self._faults.passed(each)
        own_id = listing.own_id
        answered = len(enabled & (self._answered | {own_id}))
        is_known = own_id in enabled and answered >= needed_signatures(len(enabled))
        made = 0
        if own_id is not None and is_known and self._most_wait_ns:
            with suppress(NotReady):
                self._may_report()
                wait_ns = self._most_wait_ns
                made = await asyncio.to_thread(self._books.make, own_id, listing, wait_ns)
        if due or made or not self._is_looked_up:
            self._standing = await asyncio.to_thread(self._books.standing, own_id)
            self._is_looked_up = True

    async def _ask(self, listing: Listing, node_id: int) -> None:
        peer = self._connect(listing.nodes[node_id])
        try:
            await self._ask_pages(peer, listing)
        finally:
            await peer.close()

    async def _ask_pages(self, peer: Peer, listing: Listing) -> None:
        """Take what one round takes of a node. Raises MalformedData, once all else is taken."""
        fault: MalformedData | None = None
        for _ in range(_MOST_PAGES):
            request = await asyncio.to_thread(self._request, listing)
            data = await peer.call(QUERY_PAYER_REPORTS, request, _ANSWER_SECONDS)
            has_more, found = await asyncio.to_thread(self._take, data, listing)
            fault = fault or found
            if not has_more:
                break
        if fault is not None:
            raise fault

    def _request(self, listing: Listing) -> bytes:
        request = node_api_pb2.QueryPayerReportsRequest()
        for each, last_id in self._books.attested(listing.nodes).items():
            request.queries.add(originator_node_id=each, after_sequence_id=last_id)
        return request.SerializeToString()

    def _take(self, data: bytes, listing: Listing) -> tuple[bool, MalformedData | None]:
        """Take an answer; return whether another one may have more, and the first fault in it.

        A report that is broken, or that nobody signed, ends alone. Raises MalformedData where the
        bytes are no answer.
        """
        try:
            reports = PayerReports.FromString(data).reports
        except DecodeError as error:
            raise MalformedData("answer", "payer reports", "other bytes") from error
        has_more, fault = False, None
        for each in reports:
            try:
                has_more |= self._books.take(parsed_report(each), listing) is Outcome.STORED
            except MalformedData as error:
                fault = fault or error
        return has_more, fault


def _lacks_method(error: Exception) -> bool:
    return isinstance(error, PeerRefused) and error.code is grpc.StatusCode.UNIMPLEMENTED
