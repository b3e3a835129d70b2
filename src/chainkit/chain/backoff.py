"""Pauses that grow with each failure in a row."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_GROWTHS: Final = 64
"""More of them would overflow after days without an answer."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait, all in seconds; who waits counts the failures."""

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0
    jitter: float = 0.0
    """Share of a pause, from 0 to 1, that chance may take away."""

    def pause(self, growths: int, uniform: Callable[[], float] = random.random) -> float:
        """Return the pause after it has grown so often (0: the first one).

        ``uniform`` draws from [0, 1); it is not called without jitter.
        """
        grown = self.first_seconds * self.factor ** min(growths, _MOST_GROWTHS)
        ceiling = min(grown, self.longest_seconds)
        return ceiling * (1 - self.jitter * (1 - uniform())) if self.jitter else ceiling
