"""Threads that read the database, shared fairly: no caller takes all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from chainkit_node.asked_by import ASKED_BY

_THREADS: Final = 4
OF_ONE: Final = 2
"""Threads that work for one caller at a time; its other requests wait apart."""

_Answer = TypeVar("_Answer")


class ReaderThreads:
    """``run`` is for the event loop's thread."""

    def __init__(self) -> None:
        """Begin without a thread; ``close`` ends them."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="reader")
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """Callers that have requests under way."""

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    async def run(self, read: Callable[[], _Answer]) -> _Answer:
        """Call a function in a thread, once the request's caller has a place."""
        asked_by = ASKED_BY.get()
        if asked_by is None:
            return await asyncio.wrap_future(self._threads.submit(read))
        places = self._places.get(asked_by.name)
        if places is None:
            self._places[asked_by.name] = places = asyncio.Semaphore(OF_ONE)
        await places.acquire()
        loop, work = asyncio.get_running_loop(), self._threads.submit(read)

        def free(done: Future[_Answer]) -> None:
            # Where the node ends, nobody waits any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(places.release)

        # A caller that gives up keeps its place for as long as the thread works.
        work.add_done_callback(free)
        return await asyncio.wrap_future(work)
