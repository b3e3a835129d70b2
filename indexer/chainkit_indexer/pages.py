"""Reads the chain page by page: ranges as wide as the endpoint gives, and one page ahead.

While a page is built, signed and stored, the next one is fetched: both take about as long. A page
is bounded by what it holds in memory, whatever number of blocks that is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final
from weakref import WeakKeyDictionary, finalize

from chainkit.chain import BATCH_SIZE, Endpoint
from chainkit.errors import EndpointUnavailable, RangeRefused
from chainkit.types import BlockHeader
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.fetch import (
    PayloadLogs,
    check_links,
    fetch_page,
    linked_headers,
    verified_page,
)
from chainkit_indexer.types import IndexedBlock, PlacedEvent, VerifiedPage

TARGET_BYTES: Final = 2 * 2**20
"""Size of an answer with logs that a page aims at: it takes about five times that in memory."""

RECENT_BLOCKS: Final = 64
"""Near the head, heights change their meaning: there, logs are asked for by block hash."""

_PATIENCE_SECONDS: Final = 10.0
"""An endpoint that needs so long to refuse ranges leaves the step to another one."""

_FIRST_BLOCKS: Final = 16
_JSON_BYTES_PER_LOG: Final = 700
"""What an endpoint's JSON takes for a log, beside two characters for each byte of its data."""
_PAGES_UNTIL_RETRY: Final = 64
"""A range that was refused is tried again after so many pages: limits may depend on contents."""


class AdaptiveRange:
    """How many blocks to ask an endpoint for: halves when refused, doubles while answers are small.

    ``most`` bounds it, whatever the endpoint gives.
    """

    def __init__(self, most: int) -> None:
        """Begin with a few blocks."""
        self._most = most
        self._refused: int | None = None
        self._pages_since_refusal = 0
        self.blocks = min(_FIRST_BLOCKS, most)

    def shrink(self, refused: int, suggested: int | None) -> None:
        """Take note that a range of ``refused`` blocks was refused."""
        self._refused, self._pages_since_refusal = refused, 0
        self.blocks = max(1, min(suggested or refused // 2, refused - 1))

    def adapt(self, blocks: int, answered_bytes: int) -> None:
        """Take note of what an answer over some blocks held."""
        self._pages_since_refusal += 1
        if self._pages_since_refusal > _PAGES_UNTIL_RETRY:
            self._refused = None
        fitting = blocks * TARGET_BYTES // max(answered_bytes, 1)
        ceiling = self._most if self._refused is None else min(self._most, self._refused - 1)
        self.blocks = max(1, min(fitting, 2 * max(blocks, self.blocks), ceiling))


class PageReader:
    """Fetches the page that follows a block, and in the meantime the one after it."""

    def __init__(
        self,
        settings: IndexerSettings,
        looks_ahead: bool = False,
        recent_blocks: int = RECENT_BLOCKS,
    ) -> None:
        """Look ahead where pages are taken one after the other, by a loop."""
        self._recent_blocks = recent_blocks
        self._payload_logs = PayloadLogs(settings.deployment)
        self._most = settings.page_blocks
        self._ranges: WeakKeyDictionary[Endpoint, AdaptiveRange] = WeakKeyDictionary()
        self._worker = _Worker() if looks_ahead else None
        self._ahead: _Ahead | None = None

    def read(
        self, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader, top: int
    ) -> VerifiedPage | None:
        """Return the page after ``start``, not above ``top``, or None if it does not link to it.

        Blocks more than ``recent_blocks`` below the head are asked for by range, others by hash.
        Raises what ``fetch`` does, and EndpointUnavailable where the endpoint does not even give
        one block's logs, or takes long to say that it gives none of several.
        """
        page = self._taken_from_ahead(endpoint, start, head)
        if page is None:
            page = self._fetch(endpoint, start, head, top)
        if self._worker is not None and page is not None and page.last.header.number < top:
            following = partial(self._fetch, endpoint, page.last, head, top)
            self._ahead = _Ahead(endpoint, page.last, self._worker.submit(following))
        return page

    def _taken_from_ahead(
        self, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader
    ) -> VerifiedPage | None:
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return None
        if ahead.endpoint is not endpoint:
            # The one that was left may never answer, and nobody must wait behind it.
            self._worker = _Worker()
            return None
        if not ahead.follows(start):
            return None
        page = ahead.page.result()
        if page is None or page.last.header.number <= head.number - self._recent_blocks:
            return page
        # Near the head, the chain may have left the branch since the page was fetched.
        now = endpoint.find_header(page.last.header.number)
        return page if now is not None and now.hash == page.last.header.hash else None

    def _fetch(
        self, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader, top: int
    ) -> VerifiedPage | None:
        width = self._ranges.setdefault(endpoint, AdaptiveRange(self._most))
        first = start.header.number + 1
        deep = head.number - self._recent_blocks
        patience_ends = time.monotonic() + _PATIENCE_SECONDS
        while True:
            last = min(top, first + width.blocks - 1)
            last = min(last, deep) if first <= deep else min(last, first + BATCH_SIZE - 1)
            try:
                if first <= deep:
                    page = self._by_range(endpoint, start, last)
                else:
                    page = self._by_hash(endpoint, start, last, head)
            except RangeRefused as error:
                width.shrink(max(last - first + 1, 2), error.suggested_blocks)
                if first == last or time.monotonic() > patience_ends:
                    expected = "an answer over fewer blocks"
                    raise EndpointUnavailable(error.subject, expected, error.got) from error
                continue
            if page is not None:
                width.adapt(last - first + 1, _answered_bytes(page.events))
            return page

    def _by_range(self, endpoint: Endpoint, start: IndexedBlock, last: int) -> VerifiedPage | None:
        first = start.header.number + 1
        answered, logs = endpoint.blocks_with_logs(first, last, self._payload_logs.wanted)
        headers = check_links(endpoint, first, answered)
        if headers[0].parent_hash != start.header.hash:
            return None
        return verified_page(endpoint, self._payload_logs, start, headers, logs)

    def _by_hash(
        self, endpoint: Endpoint, start: IndexedBlock, last: int, head: BlockHeader
    ) -> VerifiedPage | None:
        first = start.header.number + 1
        is_head = first == last == head.number
        if is_head:
            headers = check_links(endpoint, first, [head])
        else:
            headers = linked_headers(endpoint, first, last)
        if headers[0].parent_hash != start.header.hash:
            return None
        return fetch_page(endpoint, self._payload_logs, start, headers)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A page that is being fetched, or was."""

    endpoint: Endpoint
    start: IndexedBlock
    page: Future[VerifiedPage | None]

    def follows(self, start: IndexedBlock) -> bool:
        return self.start.header.reference == start.header.reference


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


def _answered_bytes(events: Sequence[PlacedEvent]) -> int:
    return sum(_JSON_BYTES_PER_LOG + 2 * len(placed.log.data) for placed in events)
