"""Pauses that grow with each failure in a row."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_MOST_GROWTHS: Final = 64
"""More doublings would overflow after days without an answer."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses before another attempt, in seconds; the caller counts the failures."""

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0
    jitter: float = 0.0
    """Share of a pause, from 0 to 1, that chance may take away."""

    def pause(self, growths: int, uniform: Callable[[], float] = random.random) -> float:
        """Return the pause after ``growths`` increases (0: the first pause).

        ``uniform`` draws from [0, 1); without jitter it is not called.
        """
        grown = self.first_seconds * self.factor ** min(growths, _MOST_GROWTHS)
        ceiling = min(grown, self.longest_seconds)
        return ceiling * (1 - self.jitter * (1 - uniform())) if self.jitter else ceiling
