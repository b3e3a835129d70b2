"""One endpoint of a pool: its errors, and how long it rests after each."""

from __future__ import annotations

import copy
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from chainkit.chain.backoff import Backoff
from chainkit.chain.endpoint import Endpoint
from chainkit.errors import (
    AccessRefused,
    ChainError,
    ChainkitError,
    Disproved,
    EndpointFault,
    EndpointTimedOut,
    InconsistentAnswer,
    MethodFault,
    MethodRefused,
    MethodUnavailable,
    OversizedAnswer,
    OversizedBatch,
    RangeRefused,
    RateLimited,
    StateFault,
    StateRefused,
    StateUnavailable,
    WrongChain,
)

FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 60.0
LONGEST_RETRY_AFTER_SECONDS: Final = 300.0
"""How long an endpoint's own Retry-After is honoured."""

CONTRADICTION_PAUSE_SECONDS: Final = 0.25
"""After a contradiction: a replica that lags behind by a block is normal."""
CONTRADICTIONS_TOLERATED: Final = 2
CONTRADICTION_WINDOW_SECONDS: Final = 60.0
FIRST_QUARANTINE_SECONDS: Final = 30.0
LONGEST_QUARANTINE_SECONDS: Final = 600.0
REFUSAL_SECONDS: Final = 600.0

FAILURES_UNTIL_HOPELESS: Final = 3
"""In a row, after which a wrong chain or a closed door is no longer one confused replica."""

LAST_RESORT_SECONDS: Final = 5.0
"""When no other endpoint is available, the longest rest of one that may only be slow or behind."""

SHORTEST_PAUSE_SECONDS: Final = 0.05

_PAUSES: Final = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, jitter=1.0)
_QUARANTINES: Final = Backoff(FIRST_QUARANTINE_SECONDS, LONGEST_QUARANTINE_SECONDS)

_COUNTED_AS_THEIR_KIND: Final = frozenset(
    {
        EndpointFault,
        EndpointTimedOut,
        MethodFault,
        MethodRefused,
        MethodUnavailable,
        OversizedAnswer,
        OversizedBatch,
        StateFault,
        StateRefused,
        StateUnavailable,
    }
)
"""Errors that callers distinguish; statistics count them under the class above them."""


class EndpointState(StrEnum):
    """Whether an endpoint may be asked now."""

    AVAILABLE = "available"
    COOLING = "cooling"
    """The endpoint did not answer, wants fewer requests, or contradicted itself: a short rest."""
    QUARANTINED = "quarantined"
    """The endpoint contradicted itself again and again, or serves another chain: checked before
    use."""
    REFUSED = "refused"
    """The endpoint refuses access: checked before use."""


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """An endpoint's state and counters, as an operator sees them."""

    name: str
    state: EndpointState
    until: float | None
    """On the pool's clock, when the endpoint's rest ends; in the past while the endpoint waits to
    be checked."""
    consecutive_failures: int
    error: str | None
    """Why the endpoint failed last; None where it has answered since."""
    requests: int
    errors: Mapping[str, int]
    """Errors by class in snake_case; contradictions also by their subject:
    ``inconsistent_answer:log``, ``inconsistent_answer:block`` …"""
    bytes_received: int
    seconds_spent: float


@dataclass(slots=True, eq=False)
class Member:
    """An endpoint with its errors and rests; times are on the pool's clock. Not thread-safe."""

    endpoint: Endpoint
    uniform: Callable[[], float]
    """Draws from [0, 1)."""
    state: EndpointState = EndpointState.AVAILABLE
    until: float = 0.0
    earliest: float = 0.0
    """When the endpoint may be asked if no other endpoint can be."""
    must_be_checked: bool = False
    is_being_checked: bool = False
    error: ChainError | None = None
    failures: int = 0
    """Failures since the endpoint last did its work, or passed a check."""
    _failures_since_success: int = 0
    """Quarantines: an endpoint that passes each check, and fails at each use, rests longer."""
    _contradictions: deque[float] = field(default_factory=deque)
    _quarantines: int = 0
    _last_quarantine: float = 0.0
    _errors: Counter[str] = field(default_factory=Counter)

    @property
    def is_hopeless(self) -> bool:
        """Whether only a person can help: another chain, or no access, again and again."""
        is_closed = isinstance(self.error, WrongChain | AccessRefused)
        return is_closed and self.failures >= FAILURES_UNTIL_HOPELESS

    def is_ready(self, now: float) -> bool:
        """Return whether the endpoint may be asked now, without a check."""
        return self.until <= now and not self.must_be_checked

    def succeed(self) -> None:
        """Make the endpoint available after it did its work; its quarantines are not forgotten."""
        self._release()
        self._failures_since_success = 0
        self._contradictions.clear()

    def pass_check(self) -> None:
        """Make the endpoint available after a check, which proves less than finished work."""
        # A quarantine cleared the failures when it began.
        self._release()

    def _release(self) -> None:
        self.state, self.until, self.earliest = EndpointState.AVAILABLE, 0.0, 0.0
        self.must_be_checked = False
        self.failures, self.error = 0, None

    def fail(self, error: ChainError, now: float) -> None:
        """Count an error and let the endpoint rest. RangeRefused is no fault of the endpoint."""
        self._errors[_kind(error)] += 1
        if isinstance(error, RangeRefused):
            return
        # A copy of the error holds no traceback, and so no frames and their answers.
        self.error = copy.copy(error)
        self.failures += 1
        self._failures_since_success += 1
        if isinstance(error, WrongChain):
            self._quarantine(now, LAST_RESORT_SECONDS)
        elif isinstance(error, AccessRefused):
            self.must_be_checked = True
            self._rest(EndpointState.REFUSED, now, REFUSAL_SECONDS, LAST_RESORT_SECONDS)
        elif isinstance(error, RateLimited) and error.retry_after is not None:
            # "At once" is not taken literally: the next request may be refused as well.
            seconds = max(min(error.retry_after, LONGEST_RETRY_AFTER_SECONDS), self._pause())
            self._rest(EndpointState.COOLING, now, seconds, seconds)
        elif isinstance(error, Disproved):
            # A replica that only lags never contradicts a hash.
            self._quarantine(now, LAST_RESORT_SECONDS)
        elif isinstance(error, InconsistentAnswer):
            self._doubt(now)
        else:
            self._rest(EndpointState.COOLING, now, self._pause(), LAST_RESORT_SECONDS)

    def _rest(self, state: EndpointState, now: float, seconds: float, last_resort: float) -> None:
        self.earliest = max(self.earliest, now + min(seconds, last_resort))
        # Another thread's error must not end a longer rest.
        if now + seconds >= self.until:
            self.until, self.state = now + seconds, state

    def _pause(self) -> float:
        """Return seconds to rest, exponential with full jitter, but not none at all."""
        return max(
            SHORTEST_PAUSE_SECONDS, _PAUSES.pause(self._failures_since_success - 1, self.uniform)
        )

    def _doubt(self, now: float) -> None:
        recent = self._contradictions
        recent.append(now)
        while recent[0] < now - CONTRADICTION_WINDOW_SECONDS:
            recent.popleft()
        if len(recent) <= CONTRADICTIONS_TOLERATED and not self.must_be_checked:
            pause = CONTRADICTION_PAUSE_SECONDS * len(recent) * (0.5 + self.uniform())
            self._rest(EndpointState.COOLING, now, pause, pause)
        else:
            self._quarantine(now, LAST_RESORT_SECONDS)

    def _quarantine(self, now: float, last_resort: float) -> None:
        if now - self._last_quarantine > 2 * LONGEST_QUARANTINE_SECONDS:
            self._quarantines = 0
        seconds = _QUARANTINES.pause(self._quarantines)
        self._quarantines += 1
        self._last_quarantine = now
        self.must_be_checked = True
        self._contradictions.clear()
        self._rest(EndpointState.QUARANTINED, now, seconds, last_resort)

    def status(self, now: float) -> EndpointStatus:
        """Return what an operator wants to know."""
        # An endpoint that failed last is out of order until it has answered again.
        is_available = self.until <= now and not self.must_be_checked and not self.failures
        traffic = self.endpoint.traffic
        return EndpointStatus(
            name=self.endpoint.name,
            state=EndpointState.AVAILABLE if is_available else self.state,
            until=None if is_available else self.until,
            consecutive_failures=self.failures,
            error=None if self.error is None else str(self.error),
            requests=traffic.requests,
            errors=dict(self._errors),
            bytes_received=traffic.bytes_received,
            seconds_spent=traffic.seconds,
        )


def error_kind(error: ChainkitError) -> str:
    """Return an error's class in snake_case, as statistics name it: ``rate_limited``."""
    kind = next(each for each in type(error).__mro__ if each not in _COUNTED_AS_THEIR_KIND)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _kind(error: ChainError) -> str:
    kind = error_kind(error)
    if not isinstance(error, InconsistentAnswer):
        return kind
    # Subjects begin with a word of ours: "log at …", "block 7 at …", "logs of blocks …".
    about = re.match(r"[A-Za-z_]+", error.subject)
    return f"{kind}:{about[0].lower()}" if about else kind
