"""Prefetches the next pages: a thread fetches them in turn, each is signed once it is fetched."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final
from weakref import finalize

from chainkit.chain import Endpoint
from chainkit.errors import ChainkitError
from chainkit.types import BlockReference
from chainkit_indexer.follow.build import PendingPage
from chainkit_indexer.types import IndexedBlock, VerifiedPage

_PAGES: Final = 3
"""Number of prefetched pages: one is being fetched, the others keep the signing process busy."""

Fetch = Callable[[IndexedBlock], VerifiedPage | None]
"""Returns the page after a block, None if it does not link to the block."""

_FuturePage = Future[PendingPage | None]


@dataclass(frozen=True, slots=True)
class TakenPage:
    """A prefetched page."""

    pending: PendingPage
    head: int
    """Height of the chain when the page was requested."""


class Prefetcher:
    """Prefetches pages from one endpoint, after the page that a step commits."""

    def __init__(self, begin: Callable[[VerifiedPage], PendingPage]) -> None:
        """Sign with ``begin``, which returns at once."""
        self._begin = begin
        self._worker = _Worker()
        self._endpoint: Endpoint | None = None
        self._start: BlockReference | None = None
        """The block that the first of the pages continues."""
        self._pages: deque[tuple[_FuturePage, int]] = deque()
        """With the height of the chain when each was asked for."""

    def take(self, endpoint: Endpoint, start: IndexedBlock) -> TakenPage | None:
        """Return the prefetched page after a block from this endpoint, or None; may wait for it.

        Raises the error of the fetch. Pages that do not continue the block are dropped.
        """
        if not self._continues(endpoint, start):
            self._drop()
            return None
        future, head = self._pages.popleft()
        try:
            pending = future.result()
        except ChainkitError:
            self._drop()
            raise
        if pending is None:
            self._drop()
            return None
        self._start = pending.page.last.header.reference
        return TakenPage(pending, head)

    def last_of_page(self, endpoint: Endpoint, start: IndexedBlock) -> int | None:
        """Return the last block of the page after a block if it was fetched from this endpoint."""
        if not self._continues(endpoint, start):
            return None
        future = self._pages[0][0]
        is_there = future.done() and future.exception() is None
        pending = future.result() if is_there else None
        return None if pending is None else pending.page.last.header.number

    def prefetch(
        self, endpoint: Endpoint, last: IndexedBlock, head: int, top: int, fetch: Fetch
    ) -> None:
        """Prefetch the pages after a block, up to ``top``; the chain ends at ``head``."""
        if not self._continues(endpoint, last):
            self._drop()
            self._endpoint, self._start = endpoint, last.header.reference
            if last.header.number < top:
                first = partial(_fetched_page, self._worker, fetch, self._begin, last)
                self._pages.append((self._worker.submit(first), head))
        while 0 < len(self._pages) < _PAGES:
            previous = self._pages[-1][0]
            following = partial(_page_after, self._worker, fetch, self._begin, previous, top)
            self._pages.append((self._worker.submit(following), head))

    def _continues(self, endpoint: Endpoint, start: IndexedBlock) -> bool:
        is_asked = bool(self._pages) and self._endpoint is endpoint
        return is_asked and self._start == start.header.reference

    def _drop(self) -> None:
        if any(not future.done() for future, _ in self._pages):
            # The request may never be answered, and no job may wait behind it.
            self._worker.is_left = True
            self._worker = _Worker()
        self._pages.clear()


class _Worker:
    """One thread that does jobs in turn, and ends when there are no more jobs.

    A daemon, unlike an executor's thread: an endpoint that does not answer must not keep the
    process alive.
    """

    def __init__(self) -> None:
        self.is_left = False
        """The pages are not needed any more."""
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=_do_all, args=(self._jobs,), name="prefetch", daemon=True).start()
        finalize(self, self._jobs.put, None)

    def submit(self, work: Callable[[], PendingPage | None]) -> _FuturePage:
        result: _FuturePage = Future()
        self._jobs.put(partial(_settle, result, work))
        return result


def _page_after(
    worker: _Worker,
    fetch: Fetch,
    begin: Callable[[VerifiedPage], PendingPage],
    previous: _FuturePage,
    top: int,
) -> PendingPage | None:
    # The worker has done the job: where it failed, there is no page to continue.
    before = previous.result() if previous.exception() is None else None
    if before is None or before.page.last.header.number >= top:
        return None
    return _fetched_page(worker, fetch, begin, before.page.last)


def _fetched_page(
    worker: _Worker,
    fetch: Fetch,
    begin: Callable[[VerifiedPage], PendingPage],
    start: IndexedBlock,
) -> PendingPage | None:
    if worker.is_left:
        return None
    page = fetch(start)
    return None if page is None or worker.is_left else begin(page)


def _do_all(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        # While the worker waits for the next job, it must keep neither the page nor its reader.
        del job


def _settle(result: _FuturePage, work: Callable[[], PendingPage | None]) -> None:
    try:
        result.set_result(work())
    except ChainkitError as error:
        # A copy, not the error itself: its frames hold the whole answer, and the future that holds
        # the error.
        result.set_exception(copy.copy(error))
    except BaseException as error:
        result.set_exception(error)
