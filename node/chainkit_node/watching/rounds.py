"""When each node is asked next; no I/O, no clock."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Final

ROUND_SECONDS: Final = 60.0
"""Between two rounds with the same node, on average."""

_JITTER: Final = 0.5
"""The share of a round by which the next one may come sooner or later: nobody foresees it."""


class Rounds:
    """Nodes with the moments at which they are due, in seconds of a clock that only grows."""

    def __init__(self, chance: random.Random, round_seconds: float = ROUND_SECONDS) -> None:
        """Take the source of randomness."""
        self._chance = chance
        self._round_seconds = round_seconds
        self._due_at: dict[int, float] = {}

    def due(self, node_ids: Collection[int], now: float) -> list[int]:
        """Return which of the nodes are due, and set their next rounds; forget all others.

        A new node is due within a round, so that a start asks not all of them at once.
        """
        first = {each: now + self._chance.random() * self._round_seconds for each in node_ids}
        self._due_at = {each: self._due_at.get(each, first[each]) for each in sorted(node_ids)}
        due = [each for each, due_at in self._due_at.items() if due_at <= now]
        for each in due:
            share = 1 + _JITTER * (2 * self._chance.random() - 1)
            self._due_at[each] = now + share * self._round_seconds
        return due
