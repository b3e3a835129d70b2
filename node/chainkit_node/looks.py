"""Looks at the node's database, left out where nothing can have changed since the last one.

An idle node takes four steps a second. Whatever a look finds came by the chain, or by a transaction
of this process, which has the database's lock. A process that writes beside it only deletes what
has expired: what it changes is seen by a look that is due anyway. A look that an error of the
database ended is due again at the next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from chainkit.errors import ChainkitError
from chainkit_indexer.follow.loop import Observer
from chainkit_indexer.types import Idle, StepResult

LOOK_SECONDS: Final = 5.0
"""A look is never older, whether anything changed or not."""

_T = TypeVar("_T")


class Changes(Protocol):
    """The part of ``Store`` that is used."""

    @property
    def generation(self) -> int:
        """Another number behind each transaction of this process, and each error."""
        ...


class _Looks:
    """Whether a look is due; for one thread."""

    def __init__(self, store: Changes, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._seen: int | None = None
        self._looked_at = float("-inf")

    def is_due(self) -> bool:
        """Return whether a look is due, which begins now; a write during it makes the next due."""
        generation, now = self._store.generation, self._clock()
        if generation == self._seen and now - self._looked_at < LOOK_SECONDS:
            return False
        self._seen, self._looked_at = generation, now
        return True

    def failed(self) -> None:
        """Make the next look due."""
        self._seen = None


class WhereChanged:
    """An observer of the indexer's loop that hands steps on to another one, if a look is due."""

    def __init__(
        self,
        store: Changes,
        observer: Observer,
        is_waiting: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the observer that looks, and what returns whether it waits for something else."""
        self._looks = _Looks(store, clock)
        self._observer = observer
        self._is_waiting = is_waiting

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Hand on each step that did something; a step that was idle only where a look is due."""
        is_due = self._looks.is_due()
        if is_due or self._is_waiting() or not isinstance(result, Idle):
            self._observer.succeeded(result, seconds)

    def failed(self, error: ChainkitError) -> None:
        """Hand on the error; the next step counts as one after a change."""
        self._looks.failed()
        self._observer.failed(error)


class Remembered(Generic[_T]):
    """A value that the database gives, read again where a look is due; for one thread."""

    def __init__(
        self, store: Changes, read: Callable[[], _T], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take what reads the value, which may raise StoreError."""
        self._looks = _Looks(store, clock)
        self._read = read
        self._value: _T

    def __call__(self) -> _T:
        """Return the value. Raises what reading raises, and reads again at the next call then."""
        if self._looks.is_due():
            try:
                self._value = self._read()
            except BaseException:
                self._looks.failed()
                raise
        return self._value
