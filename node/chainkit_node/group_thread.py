"""A thread that takes all waiting items at once, so that many requests share one transaction."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, Full, Queue
from typing import Final, Generic, TypeVar

from chainkit.service.refusals import Overloaded

MOST_WAITING: Final = 1_000
"""Requests that wait for one thread."""

_Item = TypeVar("_Item")


class GroupThread(Generic[_Item]):
    """Hands items to a function in their order, from its construction until ``close``."""

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

        ``subject`` names the items in errors. While the first item has waited for longer than
        ``most_seconds``, no more are taken: these would wait longer still.
        """
        self._subject = subject
        self._work = work
        self._size = size
        self._most = most
        self._most_seconds = most_seconds
        self._queue: Queue[tuple[_Item, float] | None] = Queue(MOST_WAITING)
        self._clock = time.monotonic
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, item: _Item) -> None:
        """Queue an item. Raises Overloaded where too many wait, or the first for too long."""
        if (waited := self._waited()) > self._most_seconds:
            expected = f"requests that wait at most {self._most_seconds:g} s to be stored"
            got = f"one that has waited for {waited:.0f} s; try again later"
            raise Overloaded(self._subject, expected, got)
        try:
            self._queue.put_nowait((item, self._clock()))
        except Full:
            expected = f"fewer than {MOST_WAITING} requests that wait to be stored"
            raise Overloaded(self._subject, expected, "more; try again later") from None

    def close(self) -> None:
        """End the thread after the waiting items."""
        self._queue.put(None)
        self._thread.join()

    def _waited(self) -> float:
        with self._queue.mutex:
            first = self._queue.queue[0] if self._queue.queue else None
        return 0.0 if first is None else self._clock() - first[1]

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, is_last = self._gather(first[0])
            self._work(group)
            if is_last:
                return

    def _gather(self, first: _Item) -> tuple[list[_Item], bool]:
        """Return the waiting items, up to the size, and whether the thread then ends."""
        group, size = [first], self._size(first)
        while size < self._most:
            try:
                waiting = self._queue.get_nowait()
            except Empty:
                break
            if waiting is None:
                return group, True
            group.append(waiting[0])
            size += self._size(waiting[0])
        return group, False
