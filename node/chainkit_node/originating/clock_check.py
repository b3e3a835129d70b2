"""Whether others contradict this node's clock: then the node signs nothing.

An envelope whose time is more than 300 s ahead of the clocks of others is a proof against its
originator (XIP-49 §3.2.7) that nobody can take back. So the node compares its clock with two kinds
of witnesses, and leaves 180 s for their own faults (ADR 53):

- the chain's newest block, once the node has seen the chain's head move; where the operator says
  that the chain stands still (``--stale-seconds 0``), blocks are no clock,
- other nodes that told their time. One node may lie, so two are needed, and more than agree.

Each witness is a time and the moment at which the witness was heard. The moment is of a clock that
only grows, so a clock that is set while the node runs is noticed at once, and so is its repair.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from chainkit.errors import ChainkitError, StoreError
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.monitoring.health import Check
from chainkit_indexer.types import RolledBack, StepResult

MOST_SECONDS_APART: Final = 120.0
"""Between this node's clock and a witness's."""

_LISTENED_SECONDS: Final = 600.0
"""How long a witness counts: a machine that was suspended has a monotonic clock that stood."""

_WATCHED_SECONDS: Final = 60.0
"""Between two looks at the chain: a block may be as old as the pause in which it came."""

_LEAST_NODES: Final = 2
"""Other nodes that must contradict, where the chain does not."""


class ClockContradicted(NotReady):
    """The clock differs too much from the chain's newest block, or from other nodes' clocks."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """A time that somebody told, in seconds since 1970."""

    name: str
    told: float
    heard_at: float
    """A moment of the clock that only grows."""


class ClockCheck:
    """An observer of the indexer's loop; all methods are for any thread."""

    def __init__(
        self,
        last_own_ns: Callable[[], int],
        trusts_blocks: bool = True,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the time of this node's last envelope, or 0, and the clock that is to be checked.

        ``last_own_ns`` may raise StoreError. ``clock`` is in seconds since 1970, ``steady`` in
        seconds of a clock that only grows.
        """
        self._last_own_ns = last_own_ns
        self._trusts_blocks = trusts_blocks
        self._clock = clock
        self._steady = steady
        self._highest: int | None = None
        self._looked_at = float("-inf")
        self._block: _Heard | None = None
        self._nodes: dict[int, _Heard] = {}
        self._own_ns = 0
        self._is_logged = False

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Take the chain's head, if it is new; the step began ``seconds`` ago."""
        head, known, now = result.head, self._highest, self._steady() - seconds
        was_watched = now - self._looked_at <= _WATCHED_SECONDS
        self._looked_at = now
        if known is None or isinstance(result, RolledBack):
            # Nobody knows since when this block has been the newest.
            self._highest = head.number
        elif head.number > known:
            self._highest = head.number
            if was_watched:
                self._block = _Heard(f"block {head.number}", head.timestamp, now)
        try:
            self._own_ns = self._last_own_ns()
        except StoreError:
            # The indexer's loop logs the error.
            return
        self._log()

    def failed(self, error: ChainkitError) -> None:
        """The witnesses that were heard go on to count."""
        self._log()

    def told(self, node_id: int, now_ns: int, seconds: float) -> None:
        """Take another node's clock, which it told within ``seconds``."""
        middle = self._steady() - seconds / 2
        heard = _Heard(f"node {node_id}", now_ns / NANOSECONDS_PER_SECOND, middle)
        self._nodes = self._nodes | {node_id: heard}
        self._log()

    def check(self) -> None:
        """Raise ClockContradicted where the node must not sign."""
        refusal = self._refusal()
        if refusal is not None:
            raise refusal

    def wrong(self) -> str | None:
        """Return what is wrong with the clock in words, or None."""
        refusal = self._refusal()
        return None if refusal is None else str(refusal)

    def latest_ns(self) -> int:
        """Return the time by which other nodes are judged, in nanoseconds since 1970.

        While the clock is contradicted, the first later time of those who contradict it counts: a
        clock that is behind makes no honest node's envelope one from the future.
        """
        now = self._clock()
        behind = (-ahead for _, ahead in self._contradicting(now) if ahead < 0)
        return int((now + min(behind, default=0.0)) * NANOSECONDS_PER_SECOND)

    def readiness(self) -> Check:
        """Return the check of ``/readyz``."""
        is_right = self._refusal() is None
        return Check("clock", is_right, "right" if is_right else "contradicted", "right", "")

    def _refusal(self) -> NotReady | None:
        now = self._clock()
        behind = self._own_ns / NANOSECONDS_PER_SECOND - now
        if behind > MOST_SECONDS_AHEAD:
            expected = f"one at most {MOST_SECONDS_AHEAD} s behind this node's last envelope"
            return ClockContradicted("clock", expected, f"one {behind:.0f} s behind")
        witnesses = list(self._contradicting(now))
        if not witnesses:
            return None
        expected = f"one within {MOST_SECONDS_APART:g} s of {' and '.join(n for n, _ in witnesses)}"
        apart = witnesses[0][1]
        word = "ahead" if apart > 0 else "behind"
        return ClockContradicted("clock", expected, f"one {abs(apart):.0f} s {word}")

    def _contradicting(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield who contradicts the clock, and by how many seconds the clock is ahead."""
        steady = self._steady()

        def ahead(heard: _Heard) -> float:
            return now - (heard.told + steady - heard.heard_at)

        def counts(heard: _Heard) -> bool:
            return steady - heard.heard_at <= _LISTENED_SECONDS

        nodes = [(each.name, ahead(each)) for each in self._nodes.values() if counts(each)]
        against = [each for each in nodes if abs(each[1]) > MOST_SECONDS_APART]
        in_favour = len(nodes) - len(against)
        block = self._block if self._trusts_blocks else None
        if block is not None and counts(block):
            if abs(ahead(block)) <= MOST_SECONDS_APART:
                return
            # An endpoint may lag: enough other nodes know better.
            if in_favour < _LEAST_NODES or in_favour <= len(against):
                yield block.name, ahead(block)
        elif len(against) >= _LEAST_NODES and len(against) > in_favour:
            yield from against

    def _log(self) -> None:
        """Log a change; the seconds in the words differ each time, and are no change."""
        refusal = self._refusal()
        if (refusal is not None) == self._is_logged:
            return
        self._is_logged = refusal is not None
        if refusal is None:
            log_event(LogEvent("clock_agrees", "clock: others agree with it again"))
        else:
            text = f"{refusal}; this node originates nothing until the clock is set right"
            log_event(LogEvent("clock_contradicted", text, level=logging.ERROR))
