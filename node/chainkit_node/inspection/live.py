"""The live parts of a snapshot, asked of the event loop from another thread.

Replicator, repairer and own log belong to the loop's thread. A look waits for a turn of the loop,
for a second at most: a loop that hangs must not block the page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from chainkit.errors import ChainkitError
from chainkit.service.refusals import NotReady
from chainkit_node.inspection.chain_view import ChainView
from chainkit_node.inspection.snapshot import (
    MOST_REPAIRS,
    MOST_ROWS,
    ComparisonStatus,
    HostStatus,
    LiveStatus,
    PeerLive,
    RepairStatus,
    StreamStatus,
)
from chainkit_node.inspection.words import shown
from chainkit_node.live.hub import Hub
from chainkit_node.loop_lag import LoopLag
from chainkit_node.originating.clock_check import ClockCheck
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.originating.twin import TwinCheck
from chainkit_node.replicating.own_log import OwnLog
from chainkit_node.replicating.plan import Subscription
from chainkit_node.replicating.repairer import LastComparison, Repair, Repairer
from chainkit_node.replicating.replicator import Replicator, StreamState
from chainkit_node.watching.about_self import ReportsAboutSelf
from chainkit_node.watching.own_certificate import OwnCertificate

WAIT_SECONDS: Final = 1.0
"""How long a look waits for the loop."""


class LoopSilent(ChainkitError):
    """The node's event loop has no turn for a look: it hangs, or it has ended."""


@dataclass(frozen=True, slots=True)
class LiveParts:
    """Everything that only a running node knows, at one turn of its loop."""

    status: LiveStatus
    peers: Mapping[int, PeerLive]
    highest: Mapping[int, int]
    """The highest id of each originator, as the originator last answered."""


class RecentRepairs:
    """The last comparisons that brought envelopes; used on the loop's thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with no repair; the clock is in seconds, and only grows."""
        self._clock = clock
        self._last: deque[tuple[float, Repair, int]] = deque(maxlen=MOST_REPAIRS)
        """When the last of equal repairs was, the repair, and how many these were."""

    def repaired(self, repair: Repair) -> None:
        """Record a repair."""
        same = next((each for each in self._last if each[1] == repair), None)
        if same is not None:
            self._last.remove(same)
        self._last.append((self._clock(), repair, 1 if same is None else same[2] + 1))

    def newest(self) -> tuple[RepairStatus, ...]:
        """Return the repairs, the newest first."""
        now = self._clock()
        return tuple(
            RepairStatus(
                seconds_ago=now - at,
                peer_id=repair.peer_id,
                originator_id=repair.originator_id,
                missing=repair.taken.new + repair.taken.late,
                differing=repair.taken.disputed,
                times=times,
            )
            for at, repair, times in reversed(self._last)
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """A node's doubts about itself."""

    clock: ClockCheck
    twin: TwinCheck
    certificate: OwnCertificate
    space: StorageSpace
    refusals: LastRefusal


@dataclass(frozen=True, slots=True)
class LiveView:
    """Looks at a running node; ``look`` is for any thread but the loop's."""

    loop: asyncio.AbstractEventLoop
    replicator: Replicator
    repairer: Repairer
    own_log: OwnLog
    about_self: ReportsAboutSelf
    own: Checks
    lag: LoopLag
    hub: Hub
    node_streams: Callable[[], int]
    """Counts the streams that other nodes have open here."""
    repairs: RecentRepairs
    chain: ChainView
    clock: Callable[[], float]
    """Seconds; the clock of replicator and repairer."""
    started_at: float
    """A moment of the clock."""

    def look(self) -> LiveParts:
        """Return the parts at the loop's next turn. Raises LoopSilent."""
        answer: Future[LiveParts] = Future()

        def gather() -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(self._gathered())
            except Exception as error:
                answer.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(gather)
            return answer.result(WAIT_SECONDS)
        except TimeoutError as error:
            answer.cancel()
            expected = f"a turn within {WAIT_SECONDS:g} s"
            raise LoopSilent("event loop", expected, "none") from error
        except RuntimeError as error:
            raise LoopSilent("event loop", "one that runs", "one that has ended") from error

    def _gathered(self) -> LiveParts:
        now = self.clock()
        streams, silent = self.replicator.streams(), self.replicator.silent_seconds()
        unreachable, compared = self.replicator.unreachable(), self.repairer.comparisons()
        originators = {each.originator_id for each in streams}
        peers = {
            each: PeerLive(
                stream=_stream(streams.get(Subscription(each, each)), now),
                silent_seconds=silent.get(each, 0.0),
                is_unreachable=each in unreachable,
                substitutes=_substitutes(streams, each),
                comparison=_comparison(compared.get(each), now),
            )
            for each in sorted(originators | silent.keys() | compared.keys())
        }
        return LiveParts(self._status(now), peers, self.repairer.highest())

    def _status(self, now: float) -> LiveStatus:
        failing = self.chain.failing()
        try:
            self.own_log.check()
            waits = None
        except NotReady as error:
            waits = shown(str(error))
        node_streams = self.node_streams()
        return LiveStatus(
            uptime_seconds=now - self.started_at,
            is_ready=not failing,
            failing_checks=failing,
            blocks_to_go=self.chain.blocks_to_go(),
            chain=self.chain.side(),
            own_log_waits=waits,
            clock_wrong=_words(self.own.clock.wrong()),
            storage_short=self.own.space.short(),
            twin=_words(self.own.twin.wrong()),
            certificate_wrong=_words(self.own.certificate.wrong()),
            certificate_seconds_left=self.own.certificate.seconds_left(),
            publish_refused=_words(self.own.refusals.words()),
            late_seconds=self.lag.seconds(),
            reader_streams=max(len(self.hub) - node_streams, 0),
            node_streams=node_streams,
            peer_streams=self.replicator.open_streams(),
            repairs=self.repairs.newest(),
            hosts=self._hosts(),
        )

    def _hosts(self) -> tuple[HostStatus, ...]:
        hosted = sorted(self.about_self.hosted().items())[:MOST_ROWS]
        return tuple(HostStatus(each, len(found.proofs), found.claimed) for each, found in hosted)


def _words(found: str | None) -> str | None:
    return None if found is None else shown(found)


def _stream(state: StreamState | None, now: float) -> StreamStatus | None:
    if state is None:
        return None
    error = None if state.error is None else shown(state.error)
    since = state.changed_at if state.failing_since is None else state.failing_since
    return StreamStatus(state.is_open, max(now - since, 0.0), state.received, error)


def _comparison(compared: LastComparison | None, now: float) -> ComparisonStatus | None:
    if compared is None:
        return None
    error = None if compared.error is None else shown(compared.error)
    return ComparisonStatus(max(now - compared.at, 0.0), compared.logs, error)


def _substitutes(streams: Mapping[Subscription, StreamState], node_id: int) -> tuple[int, ...]:
    asked = (each for each in streams if each.originator_id == node_id and not each.is_direct)
    return tuple(sorted(each.peer_id for each in asked))
