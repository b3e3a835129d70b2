"""A queue in which callers take turns by the work that they ask for. No thread, no clock.

Theory of operation (self-clocked fair queuing). Each item gets a mark: its cost behind the mark of
the caller's item before it, or behind the mark of the item that was taken last, whichever is
higher. The item with the lowest mark is next. So the first item of a caller comes before all but
one item, and its own cost, of each other caller, however many items these have put before.

A caller may wait with as many items as there are places left, so each one leaves half of what it
found. Where many have taken the last place, the next one that is free is for a caller without any.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


@dataclass(slots=True)
class _Caller:
    mark: int
    """The mark of the caller's last item."""
    since: deque[float] = field(default_factory=deque)
    """When each waiting item came, the first one first."""


class FairQueue(Generic[_Item]):
    """Items of callers, who have names; items of one caller stay in their order."""

    def __init__(self, most: int) -> None:
        """Begin empty; all callers together have ``most`` items at most."""
        self._most = most
        self._items: list[tuple[int, int, str, _Item]] = []
        self._callers: dict[str, _Caller] = {}
        """Those that wait."""
        self._mark = 0
        """The mark of the item that was taken last."""
        self._count = 0

    def __len__(self) -> int:
        """Return how many items wait."""
        return len(self._items)

    def has_room(self, name: str) -> bool:
        """Return whether one more item of a caller may wait."""
        caller = self._callers.get(name)
        return (len(caller.since) if caller else 0) < self._most - len(self._items)

    def waits_since(self, name: str) -> float | None:
        """Return the moment of a caller's first item, None where the caller does not wait."""
        caller = self._callers.get(name)
        return caller.since[0] if caller else None

    def put(self, name: str, item: _Item, cost: int, moment: float) -> None:
        """Add an item of a caller, which costs something."""
        caller = self._callers.setdefault(name, _Caller(self._mark))
        caller.mark = max(caller.mark, self._mark) + cost
        caller.since.append(moment)
        # Counted: of two equal marks, the first that came is next.
        self._count += 1
        heapq.heappush(self._items, (caller.mark, self._count, name, item))

    def take(self) -> _Item:
        """Return the next item. Raises IndexError where none waits."""
        self._mark, _, name, item = heapq.heappop(self._items)
        caller = self._callers[name]
        caller.since.popleft()
        if not caller.since:
            del self._callers[name]
        return item
