"""How many envelopes one transaction deletes, so that other writers wait for a moment at most."""

from __future__ import annotations

from typing import Final

HELD_SECONDS: Final = 0.005
"""How long a transaction may keep SQLite's other writers waiting: a publish takes as long."""
LEAST: Final = 50
"""Below this, a commit takes longer than the deletion."""


class Pace:
    """Learns from each transaction how large the next one may be."""

    def __init__(self, most: int, held_seconds: float | None = HELD_SECONDS) -> None:
        """Take the most envelopes of a transaction, and its time: None where it may take any."""
        self._most = most
        self._least = min(LEAST, most)
        self._held_seconds = held_seconds
        self.envelopes = most if held_seconds is None else self._least

    def took(self, envelopes: int, seconds: float) -> None:
        """Learn in how many seconds a transaction deleted so many envelopes."""
        if self._held_seconds is None:
            return
        fitting = int(envelopes * self._held_seconds / seconds) if seconds > 0 else self._most
        # At most twice as many: one fast transaction shows little.
        self.envelopes = max(self._least, min(fitting, 2 * self.envelopes, self._most))
