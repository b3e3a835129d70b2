"""The highest sequence id that a node holds, found by queries that any node answers.

A search begins at a guess, goes up or down in steps that double, and halves the last step: two
queries where the guess is right, and 2 log n for a difference of n.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

FirstBehind = Callable[[int], Awaitable[int | None]]
"""Returns the first held id above an id, None where there is none."""

_LARGEST_ID = 2**63 - 1


async def find_highest(first_behind: FirstBehind, guess: int = 0) -> int | None:
    """Return the highest id, 0 where there is none; None where the answers contradict each other.

    ``guess`` is a likely id, such as the last result. Errors of the queries are raised unchanged.
    """
    bounds = await _bounds(first_behind, guess)
    while bounds is not None and bounds[0] < bounds[1]:
        low, high = bounds
        asked = (low + high) // 2
        found = await first_behind(asked)
        if found is not None and not asked < found <= high:
            return None
        bounds = (low, asked) if found is None else (found, high)
    return None if bounds is None else bounds[0]


async def _bounds(first_behind: FirstBehind, guess: int) -> tuple[int, int] | None:
    """Return a held id, or 0, and an id above which none is held."""
    low, step = guess, 1
    found = await first_behind(guess)
    if found is None:
        return await _bounds_below(first_behind, guess)
    while found is not None:
        if not low < found <= _LARGEST_ID:
            return None
        low, step = found, step * 2
        asked = min(low + step, _LARGEST_ID)
        found = await first_behind(asked)
        if found is not None and found <= asked:
            return None
    return low, asked


async def _bounds_below(first_behind: FirstBehind, guess: int) -> tuple[int, int] | None:
    high, step = guess, 1
    while high > 0:
        asked = max(guess - step, 0)
        found = await first_behind(asked)
        if found is not None:
            return (found, high) if asked < found <= high else None
        high, step = asked, step * 2
    return 0, 0
