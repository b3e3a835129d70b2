"""Stores the digests of ranges, so that no comparison has to read many envelopes.

The keeper runs on the indexer's thread, between two steps, a piece at a time: a publisher waits for
one piece at most. A log without digests takes many steps, and originators take turns: no log keeps
the digests of another one from being stored.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from chainkit.errors import ChainkitError, StoreUnavailable
from chainkit_indexer.storage.envelopes import read_highest
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import StepResult
from chainkit_node.storage.range_digests import (
    find_missing,
    read_highest_id,
    store_ranges,
)

PIECE_RANGES: Final = 64
"""A leaf has 64 envelopes: one transaction reads 4,096."""
_MOST_SECONDS: Final = 0.5
"""Spent on one step, and one piece more."""


class RangeKeeper:
    """An observer of the indexer's loop."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the node's database, and a clock in seconds, which need not be the time of day."""
        self._store = store
        self._clock = clock
        self._last = 0
        """The originator that had the last turn."""

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Store what is missing of every node's ranges; the next steps do the rest."""
        deadline = self._clock() + _MOST_SECONDS
        try:
            waiting = deque(self._originator_ids())
            while waiting:
                self._last = waiting.popleft()
                if self._store_piece(self._last):
                    waiting.append(self._last)
                    if self._clock() >= deadline:
                        return
        except StoreUnavailable:
            # The indexer's loop logs the error.
            return

    def failed(self, error: ChainkitError) -> None:
        """Nothing was committed."""

    def _originator_ids(self) -> list[int]:
        chain = {contract.originator_id for contract in self._store.identity.contracts}
        with self._store.reading() as connection:
            ids = sorted(read_highest(connection).keys() - chain)
        # The next one is first.
        return sorted(ids, key=lambda each: each <= self._last)

    def _store_piece(self, originator_id: int) -> bool:
        """Store a piece; return whether ranges may be left."""
        with self._store.reading() as connection:
            highest = read_highest_id(connection, originator_id)
            if not find_missing(connection, originator_id, highest, most=1):
                return False
        with self._store.writing() as connection:
            return store_ranges(connection, originator_id, PIECE_RANGES) > 0
