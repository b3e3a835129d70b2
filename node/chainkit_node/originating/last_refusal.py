"""Why this node refuses what payers publish, as the last of them was told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

REMEMBERED_SECONDS: Final = 120.0
"""A cause that is gone may not be noticed otherwise where nobody publishes any more."""


class LastRefusal:
    """The last publish that the node could not serve; for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none; the clock is in seconds, and only grows."""
        self._clock = clock
        self._last: tuple[float, str] | None = None

    def refused(self, error: Exception) -> None:
        """Take note of a publish that was refused as UNAVAILABLE."""
        self._last = self._clock(), str(error)

    def stored(self) -> None:
        """Take note of a publish that was stored."""
        self._last = None

    def words(self) -> str | None:
        """Return why a publish was refused lately; None where one was stored since."""
        last = self._last
        if last is None or self._clock() - last[0] > REMEMBERED_SECONDS:
            return None
        return last[1]
