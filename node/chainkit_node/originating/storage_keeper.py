"""Looks once an hour how large the database is, and what fills it (ADR 76)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from chainkit.errors import StoreError
from chainkit_indexer.storage.store import Store
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.storage.storage_looks import (
    HOUR_SECONDS,
    DatabaseSize,
    Growth,
    read_growth,
    write_look,
)
from chainkit_node.storage.stored_bytes import StoredBytes, estimate_bytes

FIRST_LOOKS: Final = 30
"""Seconds after the start in which the free space becomes known."""

Looked = Callable[[StoredBytes, Growth | None], None]


class StorageKeeper:
    """Used on the event loop's thread; ``look`` is for a thread that may wait for the database."""

    def __init__(
        self, store: Store, space: StorageSpace, clock: Callable[[], float], looked: Looked
    ) -> None:
        """Take the database, its free space, and the time in seconds since 1970.

        ``looked`` gets each look.
        """
        self._store = store
        self._space = space
        self._clock = clock
        self._looked = looked
        self._chance = random.Random()

    async def run(self) -> None:
        """Look until it is cancelled."""
        for _ in range(FIRST_LOOKS):
            if self._space.free_bytes() is not None:
                break
            await asyncio.sleep(1)
        while True:
            # The indexer logs that a database is away.
            with suppress(StoreError):
                await asyncio.to_thread(self.look)
            await asyncio.sleep(HOUR_SECONDS)

    def look(self) -> None:
        """Look, and store what was seen. Raises StoreError."""
        used, hour = self._store.used_bytes(), int(self._clock()) // HOUR_SECONDS
        size = DatabaseSize(hour, used, self._space.room_bytes())
        with self._store.reading() as connection:
            stored = estimate_bytes(connection, self._chance)
        with self._store.writing() as connection:
            write_look(connection, size, stored)
            growth = read_growth(connection, size)
        self._looked(stored, growth)
