"""Turns of threads that write: those that answer somebody, and all others, alternate.

Within each kind the first one that came is next. So a thread with an answer to give waits for the
thread that writes, and for one more at most, however many others wait; and it holds up nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Turns:
    """One thread has its turn at a time."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._guard = Lock()
        self._is_taken = False
        self._was_answering = False
        self._waiting: dict[bool, deque[Lock]] = {True: deque(), False: deque()}
        """Locks that are released at the turns of their threads, by whether these answer."""

    def __len__(self) -> int:
        """Return how many threads wait."""
        return sum(map(len, self._waiting.values()))

    @contextmanager
    def turn(self, answers: bool) -> Iterator[None]:
        """Wait for a turn, and have it to the end of the block."""
        self._enter(answers)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, answers: bool) -> None:
        own = Lock()
        own.acquire()
        with self._guard:
            if not self._is_taken:
                self._is_taken, self._was_answering = True, answers
                return
            self._waiting[answers].append(own)
        try:
            own.acquire()
        except BaseException:
            # A signal's exception, in the main thread.
            self._give_up(own, answers)
            raise

    def _give_up(self, own: Lock, answers: bool) -> None:
        with self._guard:
            still_waits = own in self._waiting[answers]
            if still_waits:
                self._waiting[answers].remove(own)
        if not still_waits:
            self._leave()

    def _leave(self) -> None:
        """Hand the turn over, so that no thread comes before those that wait."""
        with self._guard:
            turn = not self._was_answering
            if not self._waiting[turn]:
                turn = not turn
            if self._waiting[turn]:
                self._was_answering = turn
                self._waiting[turn].popleft().release()
            else:
                self._is_taken = False
