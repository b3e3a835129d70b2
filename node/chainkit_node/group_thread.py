"""A thread that takes all waiting items at once, so that many requests share one transaction.

Callers take turns: a caller with much to do does not hold up a caller with little.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from chainkit.service.refusals import Overloaded
from chainkit_node.fair_queue import FairQueue

MOST_WAITING: Final = 1_000
"""Requests of one caller that wait for one thread; fewer while other callers wait."""
MOST_OF_ALL: Final = 2 * MOST_WAITING
"""Requests of all callers that wait for one thread."""

_Item = TypeVar("_Item")


class GroupThread(Generic[_Item]):
    """Hands items to a function, from its construction until ``close``.

    Items of one caller stay in their order.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[_Item]], None],
        size: Callable[[_Item], int],
        most: int,
        subject: str = "publish",
        most_seconds: float = math.inf,
    ) -> None:
        """Take the function, which must not raise; a group below ``most`` in size takes one more.

        ``subject`` names the items in errors. While the first item of a caller has waited for
        longer than ``most_seconds``, no more of it are taken: these would wait longer still.
        """
        self._subject = subject
        self._work = work
        self._size = size
        self._most = most
        self._most_seconds = most_seconds
        self._queue = FairQueue[_Item](MOST_OF_ALL)
        self._changed = threading.Condition(threading.Lock())
        self._ends = False
        self._clock = time.monotonic
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: _Item, caller: str = "") -> None:
        """Queue an item. Raises Overloaded where too many wait, or the first for too long."""
        now = self._clock()
        with self._changed:
            since = self._queue.waits_since(caller)
            has_room = self._queue.has_room(caller)
            waited = 0.0 if since is None else now - since
            if waited <= self._most_seconds and has_room:
                self._queue.put(caller, item, max(self._size(item), 1), now)
                self._changed.notify()
                return
        raise self._refusal(waited)

    def close(self) -> None:
        """End the thread after the waiting items."""
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()

    def _refusal(self, waited: float) -> Overloaded:
        if waited > self._most_seconds:
            expected = f"requests that wait at most {self._most_seconds:g} s to be stored"
            got = f"one that has waited for {waited:.0f} s; try again later"
            return Overloaded(self._subject, expected, got)
        expected = f"fewer than {MOST_WAITING} requests of one caller that wait to be stored"
        return Overloaded(self._subject, expected, "more than its share; try again later")

    def _run(self) -> None:
        while group := self._next_group():
            self._work(group)

    def _next_group(self) -> Sequence[_Item]:
        """Wait for items, and return them, up to the size; none at the end."""
        group: list[_Item] = []
        size = 0
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ends)
            while size < self._most and self._queue:
                group.append(self._queue.take())
                size += self._size(group[-1])
        return group
