"""Calls from other threads to the event loop: calls that come together wake the loop once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Answer = TypeVar("_Answer")


class Handover:
    """Calls functions on the event loop's thread, in the order in which they were handed over.

    The functions must not raise.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the loop, which runs or is about to."""
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._is_due = False

    def call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function soon; for any thread."""
        self._calls.append((function, arguments))
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self._run)

    async def wait(self, future: Future[_Answer]) -> _Answer:
        """Wait for the answer of a thread; a caller that goes away cancels the future."""
        waiter: asyncio.Future[_Answer] = self._loop.create_future()
        future.add_done_callback(lambda done: self.call(_settle, waiter, done))
        try:
            return await waiter
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _run(self) -> None:
        # Before the calls: a call that is handed over from now on is due again, or is found below.
        self._is_due = False
        while self._calls:
            function, arguments = self._calls.popleft()
            function(*arguments)


def _settle(waiter: asyncio.Future[_Answer], done: Future[_Answer]) -> None:
    if waiter.done():
        # The caller went away.
        return
    if (error := done.exception()) is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(done.result())
