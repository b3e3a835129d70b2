"""Asks the other nodes for this node's own envelopes, before it originates (XIP-49 §3.3.4).

A database that was restored from an older copy lacks envelopes that this node has signed and given
away. Other nodes have replicated these envelopes: this node takes them back, verified like any
other node's. Nothing is originated before another enabled node has answered; disabled nodes are
asked as well, but not waited for. Where no node answers, the sequence record decides: without a
record, the node waits. The node also waits while its database lacks envelopes that it has signed by
the record. Nodes that did not answer are asked again until they have. All are asked once more where
the database goes back while the node runs, as where a standby takes over without the last commits.
Whether another process with
this node's key answers at its URL is asked at the same time (``OwnUrl``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from chainkit.errors import ChainkitError, StoreError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady
from chainkit.types import Node
from chainkit_node.originating.sequence_record import (
    SequenceRecord,
    database_older,
)
from chainkit_node.peers.client import Peer, PeerRefused, query
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import PeerFaults
from chainkit_node.replicating.intake import Source, Takes

ANSWER_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 1.0
_LOOKS_LEFT_OUT: Final = 9
"""Once this node originates, only nodes that did not answer before are still asked, seldom."""

_PAGE: Final = 1_000
_MOST_NAMED: Final = 5
"""Nodes that a refusal names."""


async def _nothing_asked() -> None:
    """Ask nobody, as in a simulated network."""


class OwnLog:
    """``run`` is for the event loop; all else is for any thread."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        intake: Takes,
        record: SequenceRecord | None,
        ask_own_url: Callable[[], Coroutine[Any, Any, None]] = _nothing_asked,
        begins: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the registry's nodes, and a function that connects to a node.

        ``ask_own_url`` looks for another process with this node's key, before this one originates;
        ``begins`` is called when it does.
        """
        self._listing = listing
        self._connect = connect
        self._intake = intake
        self._record = record
        self._ask_own_url = ask_own_url
        self._begins = begins
        self._is_known = False
        self._signed_id = 0
        """The last id that this process signed, where the database went back behind it."""
        self._refusal: ChainkitError | None = None
        """Why the record lets this node give no sequence id."""
        self._answered: set[int] = set()
        self._awaited: tuple[int, ...] = ()
        """Enabled nodes that have not answered yet."""
        self._faults = PeerFaults(
            "own_log_unanswered",
            "could not be asked for this node's own log",
            "it is asked again until it has",
        )

    @property
    def is_known(self) -> bool:
        """Whether this node knows all that it ever signed."""
        return self._is_known

    @property
    def waits(self) -> bool:
        """Whether this node is registered, and originates nothing because of its own log."""
        is_listed = self._listing().own_id is not None
        return is_listed and (self._refusal is not None or not self._is_known)

    def check(self) -> None:
        """Raise NotReady before it is known which envelopes this node has signed."""
        if (refusal := self._refusal) is not None:
            raise NotReady(refusal.subject, refusal.expected, refusal.got, refusal.place)
        if not self._is_known:
            expected = "an answer of another node, which may hold envelopes that this one lacks"
            others = _named(self._awaited)
            got = f"none yet{others}; a --sequence-record that has its ids does without"
            raise NotReady("own log", expected, got)

    def fell_back(self, signed_id: int) -> None:
        """Take that the database lacks envelopes up to an id, which this process has signed."""
        self._signed_id = max(self._signed_id, signed_id)
        self._answered = set()
        self._is_known = False

    async def run(self) -> None:
        """Ask until every enabled node has answered once; for as long as the node runs."""
        while True:
            # The indexer logs that a database is away.
            with suppress(StoreError):
                await self._look(self._listing())
            await asyncio.sleep(LOOK_SECONDS)
            for _ in range(_LOOKS_LEFT_OUT if self._is_known else 0):
                await asyncio.sleep(LOOK_SECONDS if self._is_known else 0)

    async def _look(self, listing: Listing) -> None:
        if listing.own_id is None:
            return
        own = listing.nodes[listing.own_id]
        others = [node for node in listing.nodes.values() if node.node_id != own.node_id]
        enabled = [node for node in others if node.is_enabled]
        # A disabled node may be the only one that has the latest ids, and may be gone for good.
        asked = [
            node
            for node in (enabled if self._is_known else others)
            if node.node_id not in self._answered
        ]
        self._awaited = tuple(each.node_id for each in enabled if each in asked)
        waits = [self._ask(node, own) for node in asked]
        if not self._is_known:
            waits.append(self._ask_own_url())
        await asyncio.gather(*waits)
        if not self._is_known:
            last = await asyncio.to_thread(self._intake.last_id, own.node_id)
            if self._may_go_on(own.node_id, last, enabled):
                self._go_on(own.node_id, last)

    def _go_on(self, own_id: int, last: int) -> None:
        resumed_id = last
        try:
            if self._record is not None:
                resumed_id = self._record.check(own_id, last)
            if last < self._signed_id:
                raise database_older(own_id, self._signed_id, last, "this process")
        except (NotReady, StoreError) as error:
            if self._refusal is None:
                event = LogEvent("own_log_refused", str(error), {"last_id": last}, logging.ERROR)
                log_event(event)
            self._refusal = error
            # These nodes may get the lacking envelopes from nodes that are away now.
            self._answered.clear()
            return
        self._begins()
        self._is_known, self._refusal = True, None
        text = f"node {own_id} originates after sequence id {resumed_id}"
        log_event(LogEvent("own_log_known", text, {"last_id": resumed_id}))
        if self._record is not None:
            _log_left_over(self._record.left_over(last), last)

    def _may_go_on(self, own_id: int, last: int, enabled: Collection[Node]) -> bool:
        has_record = self._record is not None and self._record.knows(own_id, last)
        has_answer = any(node.node_id in self._answered for node in enabled)
        return not enabled or has_answer or has_record

    async def _ask(self, node: Node, own: Node) -> None:
        """Take back what a node holds of this node's log, behind what is held here."""
        source, last = Source(own.node_id, own.signing_key, is_direct=False), -1
        try:
            client = self._connect(node)
            try:
                while page := await self._page(client, own.node_id):
                    taken = await asyncio.to_thread(self._intake.take, page, source)
                    _log_taken(node, taken.new, taken.disputed)
                    # Nothing new is no fault of this node where another node was faster.
                    held = await asyncio.to_thread(self._intake.last_id, own.node_id)
                    if held <= last:
                        raise PeerRefused(f"node {node.node_id}", "later envelopes", "others")
                    last = held
            finally:
                await client.close()
        except StoreError:
            raise
        except Exception as error:
            # A bug of this node, too, counts as no answer.
            self._faults.failed(node.node_id, error)
            return
        self._answered.add(node.node_id)

    async def _page(self, client: Peer, own_id: int) -> list[bytes]:
        after = await asyncio.to_thread(self._intake.last_id, own_id)
        return list(await query(client, own_id, after, _PAGE, ANSWER_SECONDS))


def _named(node_ids: Sequence[int]) -> str:
    names = [f"node {each}" for each in node_ids[:_MOST_NAMED]]
    more = len(node_ids) - len(names)
    names += [f"{more} more"] if more else []
    return f" of {', '.join(names)}" if names else ""


def _log_left_over(given_up: int | None, last: int) -> None:
    if given_up is not None:
        text = (
            f"--resume-after {given_up} is not needed any more: the database has envelopes up to "
            f"{last}; start without it"
        )
        log_event(LogEvent("resume_after_left_over", text, level=logging.WARNING))


def _log_taken(node: Node, new: int, disputed: int) -> None:
    if new:
        text = f"took {new} of this node's own envelopes back from node {node.node_id}"
        log_event(LogEvent("own_log_taken_back", text, {"envelopes": new}, logging.WARNING))
    if disputed:
        text = f"node {node.node_id} holds others that this node signed under {disputed} of its ids"
        log_event(LogEvent("own_log_forked", text, {"envelopes": disputed}, logging.ERROR))
