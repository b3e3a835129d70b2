"""Has the next pages under way: one is being signed, the one after it is being fetched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final
from weakref import finalize

from chainkit.chain import Endpoint
from chainkit.errors import ChainkitError
from chainkit_indexer.build import BegunPage
from chainkit_indexer.types import IndexedBlock, VerifiedPage

_SOON_SECONDS: Final = 1.0
"""A slow endpoint must not hold up the page that is there already."""


class LookAhead:
    """What was asked of one endpoint, beyond the page that a step commits."""

    def __init__(self, begin: Callable[[VerifiedPage], BegunPage]) -> None:
        """Sign with ``begin``, which returns at once."""
        self._begin = begin
        self._worker = _Worker()
        self._endpoint: Endpoint | None = None
        self._begun: BegunPage | None = None
        self._fetched: _Fetched | None = None

    def take(self, endpoint: Endpoint, start: IndexedBlock) -> BegunPage | None:
        """Return the page after a block if it is under way at this endpoint; may wait for it.

        Raises what the fetching of it raised. What does not continue the block is dropped.
        """
        begun, self._begun = self._begun, None
        if self._endpoint is not endpoint:
            if self._fetched is not None:
                # The one that was left may never answer, and nobody must wait behind it.
                self._worker, self._fetched = _Worker(), None
            return None
        if begun is not None and begun.page.start.header.reference == start.header.reference:
            return begun
        fetched, self._fetched = self._fetched, None
        if fetched is None or not fetched.follows(start):
            return None
        page = fetched.page.result()
        return None if page is None else self._begin(page)

    def go_on(
        self,
        endpoint: Endpoint,
        last: IndexedBlock,
        top: int,
        fetch: Callable[[IndexedBlock], VerifiedPage | None],
    ) -> None:
        """Have the pages after a block under way, as far as ``top``."""
        self._endpoint = endpoint
        if self._fetched is None or not self._fetched.follows(last):
            self._fetch(last, top, fetch)
        if self._fetched is not None and (page := self._fetched.page_soon()) is not None:
            self._begun = self._begin(page)
            self._fetch(page.last, top, fetch)

    def _fetch(
        self, last: IndexedBlock, top: int, fetch: Callable[[IndexedBlock], VerifiedPage | None]
    ) -> None:
        self._fetched = None
        if last.header.number < top:
            self._fetched = _Fetched(last, self._worker.submit(partial(fetch, last)))


class _Fetched:
    """A page that is being fetched, or was."""

    def __init__(self, start: IndexedBlock, page: Future[VerifiedPage | None]) -> None:
        self._start = start
        self.page = page

    def follows(self, start: IndexedBlock) -> bool:
        return self._start.header.reference == start.header.reference

    def page_soon(self) -> VerifiedPage | None:
        """Return the page if it comes soon, and no error in its place."""
        try:
            return self.page.result(_SOON_SECONDS)
        except (ChainkitError, TimeoutError):
            return None


class _Worker:
    """One thread that does jobs in turn, and ends when nobody has a job for it any more.

    A daemon, unlike an executor's: an endpoint that does not answer must not keep the process.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=_do_all, args=(self._jobs,), name="look-ahead", daemon=True).start()
        finalize(self, self._jobs.put, None)

    def submit(self, work: Callable[[], VerifiedPage | None]) -> Future[VerifiedPage | None]:
        result: Future[VerifiedPage | None] = Future()
        self._jobs.put(partial(_settle, result, work))
        return result


def _do_all(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()


def _settle(result: Future[VerifiedPage | None], work: Callable[[], VerifiedPage | None]) -> None:
    try:
        result.set_result(work())
    except BaseException as error:
        result.set_exception(error)
