"""How many rows one transaction writes, so that other writers wait for a moment at most."""

from __future__ import annotations

from typing import Final

HELD_SECONDS: Final = 0.005
"""How long a transaction may take: a publish takes as long. SQLite's other writers wait for it, and
PostgreSQL's commits for what it wrote to the common log."""
LEAST: Final = 50
"""Below this, a commit takes longer than the deletion."""


class Pace:
    """Learns from each transaction how large the next one may be."""

    def __init__(self, most: int) -> None:
        """Take the most envelopes of a transaction."""
        self._most = most
        self._least = min(LEAST, most)
        self.envelopes = self._least

    def took(self, envelopes: int, seconds: float) -> None:
        """Learn in how many seconds a transaction deleted so many envelopes."""
        fitting = int(envelopes * HELD_SECONDS / seconds) if seconds > 0 else self._most
        # At most twice as many: one fast transaction shows little.
        self.envelopes = max(self._least, min(fitting, 2 * self.envelopes, self._most))
