"""Whether the loop is alive, and whether its clients can rely on the node.

The loop's thread writes, the threads of the HTTP server read. The loop's observations are one
frozen value which is replaced as a whole, so neither waits for the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from chainkit.chain import NoEndpointAvailable
from chainkit.errors import ChainkitError, InconsistentAnswer, StoreError, StoreUnavailable
from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.progress import blocks_to_go
from chainkit_indexer.types import RolledBack, StepResult

ALIVE_SECONDS: Final = 600.0
"""A loop without a step for this long hangs: the Retry-After of an only endpoint takes half of
it."""

GAP_ERRORS: Final = 3
"""Contradictions in a row which are no longer one lagging replica."""


@dataclass(frozen=True, slots=True)
class Check:
    """One reason to be ready or not."""

    name: str
    is_ok: bool
    value: float | str | None
    """None: not known yet."""
    limit: float | str | None
    """None: no limit was set."""
    unit: str
    """The unit of both; empty for a state."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The loop's last observations; moments are seconds of a clock that only grows."""

    turned: float
    """When a step ended, in whatever way."""
    succeeded: float | None = None
    """When a step succeeded; before, nothing below is known."""
    head: BlockHeader | None = None
    """The highest since the last reorg: of two endpoints one may lag."""
    head_moved: float | None = None
    """When the head was first seen."""
    cursor: BlockReference | None = None
    cursor_moved: float | None = None
    """When the cursor moved, or had nowhere to go."""
    final_block: int | None = None
    blocks_to_go: int | None = None
    contradictions: int = 0
    """Since the last step that succeeded."""
    error: ChainkitError | None = None
    """The last step's error, if it failed; resting endpoints are only a consequence of this
    error."""
    store_error: StoreError | None = None
    """Since the last step that succeeded: an endpoint that also fails must not hide this error."""
    is_stopped: bool = False


class Health:
    """Watches the loop; reading it costs nothing and blocks nobody."""

    def __init__(
        self,
        limits: ReadyLimits,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin with nothing seen; ``wall_clock`` gives seconds since 1970."""
        self.limits = limits
        self._clock = clock
        self._wall_clock = wall_clock
        self._more: list[Callable[[], Check]] = []
        self.observation = Observation(turned=clock())

    def also_checks(self, check: Callable[[], Check]) -> None:
        """Add a condition; the threads of the HTTP server call it."""
        self._more.append(check)

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Take note of what a step did."""
        now, before = self._clock(), self.observation
        head, moved = before.head, before.head_moved
        if head is None or isinstance(result, RolledBack) or result.head.number > head.number:
            # By the time when it was seen, not its own time: a quiet chain's newest block may be
            # old.
            moved = now
        if moved != before.head_moved:
            head = result.head
        to_go = blocks_to_go(result, self.limits.serves_final_only)
        has_moved = result.cursor != before.cursor or not to_go
        self.observation = Observation(
            turned=now,
            succeeded=now,
            head=head,
            head_moved=moved,
            cursor=result.cursor,
            cursor_moved=now if has_moved else before.cursor_moved,
            final_block=result.final_block,
            blocks_to_go=to_go,
        )

    def failed(self, error: ChainkitError) -> None:
        """Take note of an error after which the step is tried again."""
        before = self.observation
        self.observation = replace(
            before,
            turned=self._clock(),
            contradictions=before.contradictions + isinstance(error, InconsistentAnswer),
            error=before.error if _is_consequence(error, before) else error,
            store_error=error if isinstance(error, StoreError) else before.store_error,
        )

    def stopped(self, error: ChainkitError) -> None:
        """Take note of the error that ended the loop."""
        self.failed(error)
        self.observation = replace(self.observation, is_stopped=True)

    def age(self, moment: float | None) -> float | None:
        """Return the seconds since a moment of the observation."""
        return None if moment is None else max(self._clock() - moment, 0.0)

    def alive(self) -> Check:
        """Return whether the loop still turns."""
        seen = self.observation
        if seen.is_stopped:
            return Check("loop", False, "stopped", "running", "")
        age = self._clock() - seen.turned
        return Check("loop", age < ALIVE_SECONDS, round(age, 3), ALIVE_SECONDS, "seconds")

    def checks(self) -> tuple[Check, ...]:
        """Return all conditions of a node on which clients can rely."""
        seen = self.observation
        return (
            self.alive(),
            self._head(seen),
            self._block_age(seen),
            self._cursor(seen),
            self._step(seen),
            _sequence(seen),
            _database(seen),
            *(each() for each in self._more),
        )

    def _head(self, seen: Observation) -> Check:
        limit = self.limits.stale_seconds or None
        age = self.age(seen.head_moved)
        if age is None:
            return Check("head", False, None, limit, "seconds")
        return Check("head", limit is None or age < limit, round(age, 3), limit, "seconds")

    def _block_age(self, seen: Observation) -> Check:
        """Return the age of the newest block by its own time: it is shown, and never a reason."""
        age = None if seen.head is None else self._wall_clock() - seen.head.timestamp
        return Check("block_age", True, None if age is None else round(age, 3), None, "seconds")

    def _cursor(self, seen: Observation) -> Check:
        lag, limit = seen.blocks_to_go, self.limits.lag_blocks
        return Check("cursor", lag is not None and lag <= limit, lag, limit, "blocks")

    def _step(self, seen: Observation) -> Check:
        age, limit = self.age(seen.succeeded), self.limits.step_seconds
        if age is None:
            return Check("step", False, None, limit, "seconds")
        return Check("step", age < limit, round(age, 3), limit, "seconds")


def _is_consequence(error: ChainkitError, before: Observation) -> bool:
    return isinstance(error, NoEndpointAvailable) and before.error is not None


def _sequence(seen: Observation) -> Check:
    is_ok = seen.contradictions < GAP_ERRORS
    return Check("sequence", is_ok, seen.contradictions, GAP_ERRORS, "contradictions in a row")


def _database(seen: Observation) -> Check:
    if seen.store_error is None:
        return Check("database", True, "available", "available", "")
    word = "unavailable" if isinstance(seen.store_error, StoreUnavailable) else "refused"
    return Check("database", False, word, "available", "")
