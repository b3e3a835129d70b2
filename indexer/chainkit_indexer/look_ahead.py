"""Has the next pages under way: one is being signed, the one after it is being fetched."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final
from weakref import finalize

from chainkit.chain import Endpoint
from chainkit.errors import ChainkitError
from chainkit_indexer.build import BegunPage
from chainkit_indexer.types import IndexedBlock, VerifiedPage

_SOON_SECONDS: Final = 0.2
"""A slow endpoint must not hold up the page that is there already."""
_LEFT_ALONE_SECONDS: Final = 0.01
"""How long the signer is left alone meanwhile: it has as much to do, and no more."""


@dataclass(frozen=True, slots=True)
class TakenPage:
    """A page that was under way."""

    begun: BegunPage
    head: int
    """Height of the chain when it was asked for: so deep was the page then."""


class LookAhead:
    """What was asked of one endpoint, beyond the page that a step commits."""

    def __init__(
        self, begin: Callable[[VerifiedPage], BegunPage], sign_on: Callable[[], None]
    ) -> None:
        """Sign with ``begin``, which returns at once; call ``sign_on`` while a page is awaited."""
        self._begin, self._sign_on = begin, sign_on
        self._worker = _Worker()
        self._endpoint: Endpoint | None = None
        self._begun: TakenPage | None = None
        self._fetched: _Fetched | None = None

    def take(self, endpoint: Endpoint, start: IndexedBlock) -> TakenPage | None:
        """Return the page after a block if it is under way at this endpoint; may wait for it.

        Raises what the fetching of it raised. What does not continue the block is dropped.
        """
        taken = self._begun_after(endpoint, start)
        self._begun = None
        if self._endpoint is not endpoint:
            self._drop_fetched()
            return None
        if taken is not None:
            return taken
        if self._fetched is None or not self._fetched.follows(start):
            self._drop_fetched()
            return None
        fetched, self._fetched = self._fetched, None
        page = fetched.page.result()
        return None if page is None else TakenPage(self._begin(page), fetched.head)

    def last_of_page(self, endpoint: Endpoint, start: IndexedBlock) -> int | None:
        """Return where the page after a block ends if it was fetched from this endpoint."""
        found = self._begun_after(endpoint, start)
        return None if found is None else found.begun.page.last.header.number

    def _begun_after(self, endpoint: Endpoint, start: IndexedBlock) -> TakenPage | None:
        if self._endpoint is not endpoint or self._begun is None:
            return None
        found = self._begun.begun.page.start.header.reference
        return self._begun if found == start.header.reference else None

    def go_on(
        self,
        endpoint: Endpoint,
        last: IndexedBlock,
        head: int,
        top: int,
        fetch: Callable[[IndexedBlock], VerifiedPage | None],
    ) -> None:
        """Have the pages after a block under way, as far as ``top``; the chain ends at ``head``."""
        self._endpoint = endpoint
        if self._fetched is None or not self._fetched.follows(last):
            self._fetch(last, head, top, fetch)
        fetched = self._fetched
        if fetched is not None and (page := fetched.page_soon(self._sign_on)) is not None:
            self._begun = TakenPage(self._begin(page), fetched.head)
            self._fetch(page.last, head, top, fetch)

    def _fetch(
        self,
        last: IndexedBlock,
        head: int,
        top: int,
        fetch: Callable[[IndexedBlock], VerifiedPage | None],
    ) -> None:
        self._drop_fetched()
        if last.header.number < top:
            self._fetched = _Fetched(last, head, self._worker.submit(partial(fetch, last)))

    def _drop_fetched(self) -> None:
        if self._fetched is not None and not self._fetched.page.done():
            # It may never be answered, and nobody must wait behind it.
            self._worker = _Worker()
        self._fetched = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A page that is being fetched, or was."""

    start: IndexedBlock
    head: int
    page: Future[VerifiedPage | None]

    def follows(self, start: IndexedBlock) -> bool:
        return self.start.header.reference == start.header.reference

    def page_soon(self, meanwhile: Callable[[], None]) -> VerifiedPage | None:
        """Return the page if it comes soon, and no error in its place."""
        deadline = time.monotonic() + _SOON_SECONDS
        while not self.page.done() and time.monotonic() < deadline:
            meanwhile()
            wait([self.page], _LEFT_ALONE_SECONDS)
        try:
            return self.page.result(0)
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
        # While it waits for the next one, it must keep neither the page nor its own reader.
        del job


def _settle(result: Future[VerifiedPage | None], work: Callable[[], VerifiedPage | None]) -> None:
    try:
        result.set_result(work())
    except ChainkitError as error:
        # Not itself: its frames hold the whole answer, and the future that holds the error.
        result.set_exception(copy.copy(error))
    except BaseException as error:
        result.set_exception(error)
