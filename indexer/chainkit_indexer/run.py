"""The loop over ``step``: waits at the head, chooses endpoints, ends between two steps."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Final, Protocol

from chainkit.chain import Endpoint, EndpointPool, HeadWatcher, RetryPolicy
from chainkit.errors import (
    ChainError,
    ChainkitError,
    InconsistentAnswer,
    ReorgTooDeep,
    RetryableChainError,
    StoreUnavailable,
)
from chainkit_indexer.types import Idle, StepResult

_SLICE_SECONDS: Final = 0.05
_COLLECT_AFTER_OBJECTS: Final = 100_000
_STORE_PAUSES: Final = RetryPolicy()
REPEATS_OF_A_DEEP_REORG: Final = 3
"""How often each endpoint must have contradicted the final block before a person is asked."""


@dataclass(frozen=True, slots=True)
class Goal:
    """When a script wants the loop to end; without either it follows the chain for ever."""

    until_block: int | None = None
    """Height that the cursor must have reached."""
    until_idle: bool = False
    """End as soon as there is nothing to do."""

    def is_reached(self, result: StepResult) -> bool:
        """Tell whether the loop may end after a step."""
        if self.until_idle and isinstance(result, Idle):
            return True
        return self.until_block is not None and result.cursor.number >= self.until_block


class Observer(Protocol):
    """Whoever is told what happens, in order to tell a person or a machine."""

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Take note of what a step did, and how long it took."""

    def failed(self, error: ChainkitError) -> None:
        """Take note of an error after which the step is tried again."""


def collect_garbage_seldom() -> None:
    """Let Python look for cycles less often, for the rest of the process.

    Answers are trees of many small objects without a cycle: to search them again and again took a
    fifth of the time, and freed nothing.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS, 20, 20)


class StopRequest:
    """Set by SIGINT or SIGTERM. A second signal of the kind ends the process at once."""

    def __init__(self) -> None:
        """Nothing was asked so far."""
        self.is_set = False

    def listen(self) -> None:
        """Let signals set it from now on."""
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


def run(
    take_step: Callable[[Endpoint], StepResult],
    pool: EndpointPool,
    heads: HeadWatcher,
    goal: Goal,
    stop: StopRequest,
    observer: Observer,
    chores: Callable[[Endpoint, StepResult], bool] = lambda endpoint, result: False,
) -> None:
    """Take steps until the goal is reached or a stop is requested.

    Work is followed by the next step at once, idleness by the next head or poll. An endpoint's
    error is the pool's to answer, with another endpoint or a pause; a database that does not
    answer is waited for. Every other error ends the loop, and so does a reorg beyond the final
    block once the endpoints have repeated it: one that lies must not stop the indexer.
    ``chores`` are done after each step with the endpoint that served it; they return whether
    there is more of them to do.
    """
    too_deep = store_failures = 0
    while not stop.is_set:
        try:
            endpoint = pool.choose()
        except RetryableChainError as error:
            observer.failed(error)
            stop.wait(pool.seconds_until_available())
            continue
        began = time.monotonic()
        try:
            result = take_step(endpoint)
        except ReorgTooDeep as error:
            too_deep += 1
            if too_deep == REPEATS_OF_A_DEEP_REORG * len(pool.endpoints):
                raise
            pool.failed(endpoint, _contradiction(error))
            observer.failed(error)
        except ChainError as error:
            too_deep = 0
            pool.failed(endpoint, error)
            observer.failed(error)
        except StoreUnavailable as error:
            observer.failed(error)
            stop.wait(_STORE_PAUSES.pause(store_failures, None))
            store_failures += 1
        else:
            too_deep = store_failures = 0
            pool.succeeded(endpoint)
            pool.saw_head(endpoint, result.head.number)
            heads.saw_head(result.head.hash)
            observer.succeeded(result, time.monotonic() - began)
            is_busy = chores(endpoint, result)
            if goal.is_reached(result) and not is_busy:
                return
            if isinstance(result, Idle) and not is_busy:
                heads.wait(lambda: stop.is_set)


def _contradiction(error: ReorgTooDeep) -> InconsistentAnswer:
    # To the pool, an endpoint that contradicts what is final is one in doubt like any other.
    return InconsistentAnswer(error.subject, error.expected, error.got, error.place)
