"""The loop over ``step``: waits at the head, chooses endpoints, ends between two steps."""

from __future__ import annotations

import gc
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Final, Protocol

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.backoff import Backoff
from chainkit.chain.heads import HeadWatcher
from chainkit.errors import (
    ChainError,
    ChainkitError,
    InconsistentAnswer,
    ReorgTooDeep,
    RetryableChainError,
    StoreUnavailable,
)
from chainkit_indexer.types import Idle, RolledBack, StepResult

_SLICE_SECONDS: Final = 0.05
REPEATS_OF_A_DEEP_REORG: Final = 3
_COLLECT_AFTER_OBJECTS: Final = 100_000
_STORE_PAUSES: Final = Backoff(0.2, 5.0, jitter=0.5)


@dataclass(frozen=True, slots=True)
class Goal:
    """When the loop ends for a script; without either field the loop follows the chain for ever."""

    until_block: int | None = None
    """Height that the cursor must have reached."""
    until_idle: Callable[[StepResult], bool] | None = None
    """End as soon as nothing is left to do: returns whether this is so after an idle step."""

    def is_reached(self, result: StepResult) -> bool:
        """Return whether the loop may end after a step."""
        if self.until_idle is not None and isinstance(result, Idle) and self.until_idle(result):
            return True
        return self.until_block is not None and result.cursor.number >= self.until_block


class Observer(Protocol):
    """Receives the results of steps, for logs, metrics and the terminal."""

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Record what a step did, and how long it took."""

    def failed(self, error: ChainkitError) -> None:
        """Take note of an error after which the step is tried again."""


def collect_garbage_seldom() -> None:
    """Let Python search for cycles less often, for the rest of the process.

    Answers are trees of many small objects without a cycle: repeated searches took a fifth of the
    time, and freed nothing.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 20, 20)


class StopRequest:
    """Set by SIGINT or SIGTERM. A second signal of the kind ends the process at once."""

    def __init__(self) -> None:
        """Nothing was asked so far."""
        self.is_set = False

    def listen(self) -> None:
        """Let signals request the stop from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the request."""
        # Not threading.Event: its lock is not safe to take in a signal handler.
        deadline = time.monotonic() + seconds
        while not self.is_set and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_SECONDS))

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        signal.signal(number, signal.SIG_DFL)


class DeepReorgs:
    """Decides when to accept that a reorg went beyond the final block: then a person must decide.

    One endpoint that lies must not stop the indexer, and an endpoint that does not answer must not
    keep it running. Each endpoint has to report the reorg REPEATS_OF_A_DEEP_REORG times; a single
    report is enough if no step succeeded for SILENCE_SECONDS.
    """

    SILENCE_SECONDS: Final = 60.0

    def __init__(self, endpoints: Sequence[Endpoint], clock: Callable[[], float]) -> None:
        """Begin without reports."""
        self._endpoints = endpoints
        self._clock = clock
        self._said: Counter[Endpoint] = Counter()
        self._first_said = 0.0

    def is_believed(self, endpoint: Endpoint) -> bool:
        """Record that an endpoint contradicts the final block; return whether to accept that."""
        now = self._clock()
        if not self._said:
            self._first_said = now
        self._said[endpoint] += 1
        if self._said[endpoint] < REPEATS_OF_A_DEEP_REORG:
            return False
        is_unanimous = all(self._said[each] >= REPEATS_OF_A_DEEP_REORG for each in self._endpoints)
        return is_unanimous or now - self._first_said >= self.SILENCE_SECONDS

    def refuted(self) -> None:
        """Record a step that succeeded: the final block is still valid."""
        self._said.clear()


class ReorgFrequency:
    """Counts reorgs: an endpoint that alternates between branches causes more than a chain."""

    MOST: Final = 6
    WITHIN_SECONDS: Final = 60.0

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with no reorg."""
        self._clock = clock
        self._moments: deque[float] = deque(maxlen=self.MOST)

    def exceeds_limit(self) -> bool:
        """Take note of a reorg; return whether there were too many in a minute."""
        self._moments.append(self._clock())
        oldest = self._moments[0]
        return len(self._moments) == self.MOST and self._clock() - oldest < self.WITHIN_SECONDS


def run(
    take_step: Callable[[Endpoint], StepResult],
    pool: EndpointPool,
    heads: HeadWatcher,
    goal: Goal,
    stop: StopRequest,
    observer: Observer,
    background_tasks: Callable[[Endpoint, StepResult], bool] = lambda endpoint, result: False,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Take steps until the goal is reached or a stop is requested.

    A step that did something is followed by the next step at once, an idle step by the next head or
    poll. The pool handles an endpoint's error, with another endpoint or a pause; a database that
    does not answer is waited for. Every other error ends the loop, and so does a reorg beyond the
    final block once it is accepted (see DeepReorgs). ``background_tasks`` runs after each step with
    the endpoint of the step, and returns whether more background work is due.
    """
    deep_reorgs, reorg_frequency = DeepReorgs(pool.endpoints, clock), ReorgFrequency(clock)
    store_failures = 0
    while not stop.is_set:
        try:
            endpoint = pool.choose()
        except RetryableChainError as error:
            observer.failed(error)
            # An endpoint that is being checked is due, but cannot be asked yet.
            stop.wait(max(pool.seconds_until_available(), _SLICE_SECONDS))
            continue
        began = clock()
        try:
            result = take_step(endpoint)
        except ReorgTooDeep as error:
            if deep_reorgs.is_believed(endpoint):
                raise
            pool.failed(endpoint, _contradiction(error))
            observer.failed(error)
            continue
        except ChainError as error:
            pool.failed(endpoint, error)
            observer.failed(error)
            continue
        except StoreUnavailable as error:
            observer.failed(error)
            stop.wait(_STORE_PAUSES.pause(store_failures))
            store_failures += 1
            continue
        store_failures = 0
        deep_reorgs.refuted()
        pool.succeeded(endpoint)
        pool.saw_head(endpoint, result.head.number)
        heads.saw_head(result.head.hash)
        observer.succeeded(result, clock() - began)
        if isinstance(result, RolledBack):
            pool.saw_reorg(result.head.number)
        if isinstance(result, RolledBack) and reorg_frequency.exceeds_limit():
            subject, got = f"chain at {endpoint.name}", f"{ReorgFrequency.MOST} reorgs in a minute"
            pool.failed(endpoint, InconsistentAnswer(subject, "one branch", got))
        is_busy = background_tasks(endpoint, result)
        if not is_busy and goal.is_reached(result):
            return
        if isinstance(result, Idle) and not is_busy:
            heads.wait(lambda: stop.is_set)


def _contradiction(error: ReorgTooDeep) -> InconsistentAnswer:
    # The pool treats an endpoint that contradicts a final block as any other endpoint in doubt.
    return InconsistentAnswer(error.subject, error.expected, error.got, error.place)
