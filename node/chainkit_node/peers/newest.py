"""The newest listing of the registry's nodes, kept for the event loop, which never waits for it.

A thread reads the listing again every second; while the database is away, the last listing stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from chainkit.errors import StoreError
from chainkit_node.peers.directory import Listing

TURN_SECONDS: Final = 0.5


class NewestListing:
    """Made and used on the event loop's thread."""

    def __init__(
        self,
        read: Callable[[], Listing],
        ended: Callable[[], object],
        turn_seconds: float = TURN_SECONDS,
    ) -> None:
        """Take a function that reads a listing in a thread, and a callback for an early end."""
        self._read = read
        self._ended = ended
        self._turn_seconds = turn_seconds
        self._listing = Listing({}, None, None)
        self._task: asyncio.Task[None] | None = None

    def listing(self) -> Listing:
        """Return the newest listing, at once; one without a block where none was read yet."""
        return self._listing

    def enabled_id(self) -> int | None:
        """Return the id of this node; None while it is not known to be enabled."""
        own = self._listing.nodes.get(self._listing.own_id or 0)
        return own.node_id if own is not None and own.is_enabled else None

    async def start(self) -> None:
        """Read a listing, and go on until ``finish``."""
        await self._look()
        self._task = asyncio.create_task(self._turn())
        self._task.add_done_callback(lambda task: self._ended())

    async def finish(self) -> None:
        """End the thread, if it was started. Raises the error that ended it before, if any."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _turn(self) -> None:
        while True:
            await asyncio.sleep(self._turn_seconds)
            await self._look()

    async def _look(self) -> None:
        with suppress(StoreError):
            self._listing = await asyncio.to_thread(self._read)
