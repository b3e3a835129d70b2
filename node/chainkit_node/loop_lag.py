"""How late the event loop is: a node that is late itself must not call others slow.

A task wakes up four times a second, and measures how much later than asked it had its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_LEAST_SECONDS: Final = 0.1
"""Shorter delays are forgotten: an answer counts as slow from a second on."""
_TICK_SECONDS: Final = 0.25
_KEPT: Final = 1_000


class LoopLag:
    """``run`` is for the event loop, all else for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock in seconds that only grows."""
        self._clock = clock
        self._due: float | None = None
        self._last_two = (0.0, 0.0)
        self._delays: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """When a delay ended, and its seconds."""

    async def run(self) -> None:
        """Measure until it is cancelled."""
        while True:
            self._due = self._clock() + _TICK_SECONDS
            await asyncio.sleep(_TICK_SECONDS)
            now = self._clock()
            delay = max(now - self._due, 0.0)
            self._last_two = self._last_two[1], delay
            if delay >= _LEAST_SECONDS:
                self._delays.append((now, delay))

    def seconds(self) -> float:
        """Return by how much the loop is late twice in a row.

        A loop that stood still once, as a paused process's, is on time again.
        """
        before, last = self._last_two
        return max(min(before, last), min(last, self._overdue()))

    def delays(self, seconds: float) -> float:
        """Return the sum of the delays that ended in the last ``seconds``, or go on."""
        since = self._clock() - seconds
        return self._overdue() + sum(delay for at, delay in list(self._delays) if at >= since)

    def _overdue(self) -> float:
        return 0.0 if self._due is None else max(self._clock() - self._due, 0.0)
