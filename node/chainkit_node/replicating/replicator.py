"""Keeps the streams open that the plan asks for, and hands what they bring to the intake.

Runs on the event loop; whatever blocks runs in threads. A stream that ends is opened again behind
the last held envelope, after a pause that grows with each failure. A node that sends what the
originator did not sign counts as one that answers with an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import grpc

from chainkit.chain.backoff import Backoff
from chainkit.errors import ChainkitError, ConfigurationError, MalformedData, StoreError
from chainkit.misbehavior.report import LivenessRequest
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.types import Node
from chainkit_node.peers.client import Peer, PeerRefused, PeerSilent, subscription
from chainkit_node.peers.directory import Listing
from chainkit_node.peers.work import end_all
from chainkit_node.replicating.delivery import Delivery, Repeats
from chainkit_node.replicating.intake import Source, Taken, Takes
from chainkit_node.replicating.liveness import Liveness, LivenessReports
from chainkit_node.replicating.plan import Subscription, SubscriptionPlan

LOOK_SECONDS: Final = 0.5
"""How often the plan is made anew."""

OF_USE_SECONDS: Final = 60.0
"""A stream that was open for so long was of use, also without news: the next try is soon."""

PAUSES: Final = Backoff(0.5, 30.0, jitter=0.5)

MOST_REPEATED: Final = 10_000
"""Envelopes in a row that the peer sent again, after which a stream counts as failed."""


@dataclass(slots=True)
class StreamState:
    """The state of a stream, for the node's status."""

    is_open: bool = False
    """The stream's headers came, and it has not ended since."""
    error: str | None = None
    """Why the stream is not open."""
    received: int = 0
    """New envelopes since the start."""
    changed_at: float = 0.0
    """When the stream opened or ended: a moment of the replicator's clock."""
    failing_since: float | None = None
    """Since when the peer has answered with errors alone: a moment of the same clock."""
    is_taking: bool = False
    """A frame is being stored."""


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[None]
    node: Node
    signing_key: bytes
    """The originator's key, by which the stream's envelopes are verified."""
    state: StreamState = field(default_factory=StreamState)


class Replicator:
    """Used on the event loop's thread; ``run`` once."""

    def __init__(
        self,
        listing: Callable[[], Listing],
        connect: Callable[[Node], Peer],
        intake: Takes,
        reports: LivenessReports,
        plan: SubscriptionPlan,
        clock: Callable[[], float],
        taken: Callable[[int, Taken], None],
        compare_soon: Callable[[int], None],
        uniform: Callable[[], float] = random.random,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Take the registry's nodes, and a function that connects to a node.

        ``clock`` is in seconds and only grows; ``taken`` gets each batch of an originator;
        ``compare_soon`` each node that begins to answer for itself, or that holds more below what
        its stream has sent; ``uniform`` draws from [0, 1).
        """
        self._listing = listing
        self._connect = connect
        self._intake = intake
        self._plan = plan
        self._clock = clock
        self._taken = taken
        self._compare_soon = compare_soon
        self._uniform = uniform
        self._look_seconds = look_seconds
        self._liveness = Liveness(reports, clock)
        self._reachability = self._liveness.reachability
        self._clients: dict[int, tuple[Node, Peer]] = {}
        self._running: dict[Subscription, _Running] = {}

    async def run(self) -> None:
        """Replicate until it is cancelled."""
        try:
            while True:
                await self._follow_registry(self._listing())
                await asyncio.sleep(self._look_seconds)
        finally:
            await self._end(list(self._running))
            await self._close_clients({})

    def streams(self) -> Mapping[Subscription, StreamState]:
        """Return the state of each stream."""
        return {each: running.state for each, running in self._running.items()}

    def open_streams(self) -> int:
        """Count the streams that are open."""
        return sum(running.state.is_open for running in self._running.values())

    def delivery(self, originator_id: int) -> Delivery:
        """Return what the streams of an originator are doing."""
        states = [
            running.state
            for each, running in self._running.items()
            if each.originator_id == originator_id and running.state.is_open
        ]
        if any(state.is_taking for state in states):
            return Delivery.TAKES
        return Delivery.WAITS if states else Delivery.NONE

    def unreachable(self) -> frozenset[int]:
        """Return the nodes that have not answered for too long."""
        now = self._clock()
        asked = {each.peer_id for each in self._running}
        return frozenset(each for each in asked if self._reachability.is_unreachable(each, now))

    def silent_seconds(self) -> Mapping[int, float]:
        """Return for how long each node that is asked has not answered, 0 where it has."""
        now = self._clock()
        asked = {each.peer_id for each in self._running}
        return {each: self._reachability.silent_seconds(each, now) for each in asked}

    async def _follow_registry(self, listing: Listing) -> None:
        nodes = {each: node.is_enabled for each, node in listing.nodes.items()}
        wanted = self._plan.subscriptions(listing.own_id, nodes, self.unreachable(), self._clock())
        ended = [
            each
            for each, running in self._running.items()
            if each not in wanted or _is_outdated(running, each, listing.nodes)
        ]
        await self._end(ended)
        await self._close_clients({each.peer_id: listing.nodes[each.peer_id] for each in wanted})
        for each in sorted(wanted - self._running.keys()):
            self._begin(each, listing.nodes)

    def _begin(self, each: Subscription, nodes: Mapping[int, Node]) -> None:
        node, originator = nodes[each.peer_id], nodes[each.originator_id]
        state = StreamState(changed_at=self._clock())
        task = asyncio.create_task(
            self._keep_open(each, node, originator, state), name=f"replication {each}"
        )
        self._running[each] = _Running(task, node, originator.signing_key, state)

    async def _end(self, ended: Sequence[Subscription]) -> None:
        await end_all([self._running.pop(each).task for each in ended])

    async def _close_clients(self, wanted: Mapping[int, Node]) -> None:
        gone = [each for each, (node, _) in self._clients.items() if wanted.get(each) != node]
        for node_id in gone:
            _, client = self._clients.pop(node_id)
            self._reachability.forget(node_id)
            await client.close()

    def _client(self, node: Node) -> Peer:
        if node.node_id not in self._clients:
            self._clients[node.node_id] = node, self._connect(node)
        return self._clients[node.node_id][1]

    async def _keep_open(
        self, each: Subscription, node: Node, originator: Node, state: StreamState
    ) -> None:
        failures = 0
        source = Source(originator.node_id, originator.signing_key, each.is_direct)
        while True:
            began, received = self._clock(), state.received
            try:
                client = self._client(node)
                await self._follow(each, client, source, state)
            except (MalformedData, PeerRefused, PeerSilent, ConfigurationError) as error:
                was_of_use = state.received > received or self._clock() - began > OF_USE_SECONDS
                failures = 0 if was_of_use else failures + 1
                self._log_error(each, state, error)
                is_silent = isinstance(error, PeerSilent)
                state.failing_since = None if is_silent else state.failing_since or self._clock()
            except StoreError as error:
                failures += 1
                self._log_error(each, state, error)
            except Exception as error:
                # A bug of this node ends no other stream, and is never reported as the peer's.
                failures += 1
                self._log_error(each, state, ChainkitError(f"{each}", "envelopes", repr(error)))
            if state.is_open:
                state.is_open, state.changed_at = False, self._clock()
            await asyncio.sleep(PAUSES.pause(failures, self._uniform))

    async def _follow(
        self, each: Subscription, client: Peer, source: Source, state: StreamState
    ) -> None:
        """Take the envelopes of one stream until the stream fails."""
        after = await asyncio.to_thread(self._intake.last_id, each.originator_id)
        asked_at = self._clock()
        patience = self._reachability.patience(each.peer_id)
        request = subscription(each.originator_id, after)
        frames = client.subscribe(each.originator_id, after, patience)
        opened = partial(self._opened, each, state, request, asked_at)
        try:
            async with aclosing(frames):
                await self._take_all(frames, each, source, state, Repeats(after), opened)
        except PeerSilent:
            if not state.is_open:
                self._liveness.silent(each.peer_id, request, asked_at)
            raise
        except (PeerRefused, MalformedData) as error:
            is_moved = isinstance(error, PeerRefused) and error.cursor is not None
            if is_moved:
                # Reading the stream again from the cursor may take hours; a comparison takes
                # moments.
                self._compare_soon(each.peer_id)
            is_rightful = is_moved or _is_about_registry(error)
            self._liveness.refused(each.peer_id, request, asked_at, is_rightful)
            raise

    async def _take_all(
        self,
        frames: AsyncIterator[Sequence[bytes]],
        each: Subscription,
        source: Source,
        state: StreamState,
        repeats: Repeats,
        opened: Callable[[], None],
    ) -> None:
        async for frame in frames:
            if not state.is_open:
                opened()
            if frame:
                taken = await self._take(frame, source, state)
                if taken.new or taken.late:
                    repeats.brought_new()
                elif taken.repeated:
                    repeats.brought_held(frame)
                state.received += taken.new + taken.late
                self._taken(each.originator_id, taken)
            if repeats.count > MOST_REPEATED:
                raise PeerRefused(f"node {each.peer_id}", "new envelopes", "the same again")

    async def _take(self, frame: Sequence[bytes], source: Source, state: StreamState) -> Taken:
        state.is_taking = True
        try:
            return await asyncio.to_thread(self._intake.take, frame, source)
        finally:
            state.is_taking = False

    def _opened(
        self, each: Subscription, state: StreamState, request: LivenessRequest, asked_at: float
    ) -> None:
        state.is_open, state.error, state.changed_at = True, None, self._clock()
        state.failing_since = None
        self._liveness.answered(each.peer_id, request, state.changed_at - asked_at)
        if each.is_direct:
            self._compare_soon(each.peer_id)
        text = f"node {each.peer_id} answers with envelopes of originator {each.originator_id}"
        log_event(LogEvent("peer_stream_open", text, _fields(each)))

    def _log_error(self, each: Subscription, state: StreamState, error: ChainkitError) -> None:
        """Log an error once, until the stream is open again or the error changes."""
        if state.is_open or state.error != str(error):
            text = f"no envelopes of originator {each.originator_id}: {error}"
            fields = _fields(each) | {"error": str(error)}
            log_event(LogEvent("peer_stream_failed", text, fields, logging.WARNING))
        state.error = str(error)


def _is_outdated(running: _Running, each: Subscription, nodes: Mapping[int, Node]) -> bool:
    """Return whether the registry has changed the peer's entry or the originator's key."""
    # A key changes under an id where a reorg gives the id to another node.
    key = nodes[each.originator_id].signing_key
    return running.node != nodes[each.peer_id] or running.signing_key != key


def _is_about_registry(error: PeerRefused | MalformedData) -> bool:
    """Return whether the peer's registry may not list this node yet."""
    return isinstance(error, PeerRefused) and error.code is grpc.StatusCode.UNAUTHENTICATED


def _fields(each: Subscription) -> dict[str, int | str]:
    return {"peer_id": each.peer_id, "originator_id": each.originator_id}
