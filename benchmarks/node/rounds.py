"""Rounds of one measurement on both builds in turn, and the ratios between them.

A ratio is formed within each round: a machine that is busier in one round than in the next changes
both of its sides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Row = dict[str, float]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Rounds:
    """Figures by their names: a row of this build and one of the former build for each round."""

    now: list[Row]
    before: list[Row]

    def ratios(self, name: str) -> list[float]:
        """Return a figure's ratios, this build's to the former build's, the least first."""
        pairs = zip(self.now, self.before, strict=True)
        return sorted(now[name] / before[name] for now, before in pairs)

    def middle(self, name: str) -> tuple[float, float]:
        """Return both builds' medians of a figure."""
        return median(row[name] for row in self.now), median(row[name] for row in self.before)


async def in_turn(
    rounds: int, measure: Callable[[_T, int], Awaitable[Row]], now: _T, before: _T
) -> Rounds:
    """Measure both in so many rounds, the former build first in every second one."""
    found = Rounds([], [])
    for number in range(rounds):
        sides = [(now, found.now), (before, found.before)]
        for side, rows in sides if number % 2 == 0 else reversed(sides):
            rows.append(await measure(side, number))
    return found
