"""How fast the indexer catches up, and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chainkit_indexer.types import Advanced, StepResult

RATE_SECONDS: Final = 30.0
"""Over how long a time the rates are measured."""

_SAMPLE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates of the last RATE_SECONDS, and the estimates from them."""

    blocks_per_second: float
    events_per_second: float
    remaining_seconds: float | None
    """None where nothing moves."""

    def __str__(self) -> str:
        """Rates and remaining time, for a person."""
        rates = f"{self.blocks_per_second:,.0f} blocks/s, {self.events_per_second:,.0f} events/s"
        if self.remaining_seconds is None:
            return rates
        return f"{rates}, {duration(self.remaining_seconds)} left"


def blocks_to_go(result: StepResult, serves_final_only: bool) -> int:
    """Return the distance of the cursor from its target: the head, or the final block."""
    goal = result.final_block if serves_final_only else result.head.number
    return max(goal - result.cursor.number, 0)


class RateMeter:
    """Measures the rates of one period of catching up."""

    def __init__(
        self, block: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Measure from the height where the cursor was ``seconds`` ago."""
        self.first_block = block + 1
        self.envelopes = 0
        self.quarantined = 0
        self._clock = clock
        self._began = clock() - seconds
        self._samples: deque[tuple[float, int, int]] = deque([(self._began, block, 0)])

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    def advanced(self, result: Advanced, to_go: int) -> Pace:
        """Return the pace after one more page, with so many blocks left."""
        now, block = self._clock(), result.cursor.number
        self.envelopes += result.envelopes
        self.quarantined += result.quarantined
        events = self.envelopes + self.quarantined
        while len(self._samples) > 1 and self._samples[1][0] <= now - RATE_SECONDS:
            self._samples.popleft()
        since, first_block, first_events = self._samples[0]
        if now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, block, events))
        seconds = max(now - since, 1e-3)
        blocks_per_second = (block - first_block) / seconds
        return Pace(
            blocks_per_second=blocks_per_second,
            events_per_second=(events - first_events) / seconds,
            remaining_seconds=to_go / blocks_per_second if blocks_per_second > 0 else None,
        )


def duration(seconds: float) -> str:
    """Write a duration in the largest unit that fits twice: 90 seconds, 15 minutes, 3 hours."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
