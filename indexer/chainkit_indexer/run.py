"""The loop over ``step``: waits at the head, backs off from errors, ends between two steps."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Final, Protocol

from chainkit.errors import RetryableChainError
from chainkit_indexer.types import Idle, StepResult

LONGEST_PAUSE_SECONDS: Final = 5.0
_SLICE_SECONDS: Final = 0.05


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
    """Whoever is told what happens, in order to tell a person."""

    def succeeded(self, result: StepResult) -> None:
        """Take note of what a step did."""

    def failed(self, error: RetryableChainError) -> None:
        """Take note of an error after which the step is tried again."""


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
    take_step: Callable[[], StepResult],
    poll_seconds: float,
    goal: Goal,
    stop: StopRequest,
    observer: Observer,
) -> None:
    """Take steps until the goal is reached or a stop is requested.

    Work is followed by the next step at once, idleness by ``poll_seconds``, a retryable error by
    a pause that doubles up to LONGEST_PAUSE_SECONDS. Every other error ends the loop.
    """
    pause = poll_seconds
    while not stop.is_set:
        try:
            result = take_step()
        except RetryableChainError as error:
            observer.failed(error)
            stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            continue
        pause = poll_seconds
        observer.succeeded(result)
        if goal.is_reached(result):
            return
        if isinstance(result, Idle):
            stop.wait(poll_seconds)
