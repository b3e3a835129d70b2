"""Reads the chain page by page, in ranges as wide as the endpoint gives.

The size in memory limits a page, not the number of blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from chainkit.chain import BATCH_SIZE, Endpoint
from chainkit.chain.log_ranges import RangeWidth
from chainkit.errors import EndpointUnavailable, RangeRefused
from chainkit.types import BlockHeader
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.build import PendingPage, submit_page
from chainkit_indexer.follow.fetch import (
    PayloadLogs,
    check_links,
    fetch_page,
    linked_headers,
    verified_page,
)
from chainkit_indexer.follow.prefetch import Prefetcher
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.types import IndexedBlock, PlacedEvent, VerifiedPage

TARGET_BYTES: Final = 3 * 2**20
"""Size of an answer with logs that a page aims at: such an answer takes about five times as much
memory."""

RECENT_BLOCKS: Final = 64
"""Near the head, the block of a height may change: there, logs are asked for by block hash."""

_HEAD_SECONDS: Final = 1.0
"""How long a head is used for prefetched pages: asking for the head takes time for each page."""

_PATIENCE_SECONDS: Final = 10.0
"""An endpoint that needs so long to refuse ranges leaves the step to another one."""

_FIRST_BLOCKS: Final = 16
_JSON_BYTES_PER_LOG: Final = 700
"""Bytes of a log in an endpoint's JSON, beside two characters for each byte of its data."""


@dataclass(frozen=True, slots=True)
class _Head:
    header: BlockHeader
    asked_at: float
    """Seconds of the monotonic clock."""


class PageReader:
    """Fetches the page that follows a block, and begins to sign it."""

    def __init__(
        self,
        settings: IndexerSettings,
        signer: Signer,
        prefetches: bool = False,
        recent_blocks: int = RECENT_BLOCKS,
        clock: Callable[[], float] = time.monotonic,
        prover: PageProver | None = None,
    ) -> None:
        """Prefetch pages if a loop takes them one after the other.

        Without a ``prover``, an endpoint has to prove each page by itself.
        """
        self._recent_blocks = recent_blocks
        self._clock = clock
        self._payload_logs = PayloadLogs(settings.deployment)
        self._prover = prover or PageProver(settings)
        self._chain_id = settings.deployment.chain_id
        self._heads: WeakKeyDictionary[Endpoint, _Head] = WeakKeyDictionary()
        self._most = settings.page_blocks
        self._ranges: WeakKeyDictionary[Endpoint, RangeWidth] = WeakKeyDictionary()
        self._begin = partial(submit_page, signer=signer)
        self._prefetcher = Prefetcher(self._begin) if prefetches else None

    def head(self, endpoint: Endpoint, position: IndexedBlock | None) -> BlockHeader:
        """Return an endpoint's newest block, or an earlier one where it makes no difference.

        No request is made if the page after the position is already fetched and ends far below.
        Raises WrongChain for the head of another chain.
        """
        known = self._heads.get(endpoint)
        if known is None or not self._will_do(known, endpoint, position):
            asked_at = self._clock()
            known = _Head(endpoint.head_of(self._chain_id), asked_at)
            self._heads[endpoint] = known
        return known.header

    def _will_do(self, known: _Head, endpoint: Endpoint, position: IndexedBlock | None) -> bool:
        if self._prefetcher is None or position is None:
            return False
        last = self._prefetcher.last_of_page(endpoint, position)
        is_deep = last is not None and last <= known.header.number - RECENT_BLOCKS
        return is_deep and self._clock() - known.asked_at < _HEAD_SECONDS

    def read(
        self, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader, top: int
    ) -> PendingPage | None:
        """Return the page after ``start``, up to ``top``, or None if it does not link to ``start``.

        Blocks more than ``recent_blocks`` below the head are asked for by range, others by hash.
        Raises the errors of ``fetch``, and EndpointUnavailable where the endpoint does not even
        return one block's logs, or takes long to refuse those of several blocks.
        """
        pending = self._taken_from_ahead(endpoint, start, head, top)
        if pending is None:
            page = self._fetch(endpoint, head, top, start)
            pending = None if page is None else self._begin(page)
        if self._prefetcher is not None and pending is not None:
            following = partial(self._fetch, endpoint, head, top)
            self._prefetcher.prefetch(endpoint, pending.page.last, head.number, top, following)
        return pending

    def _taken_from_ahead(
        self, endpoint: Endpoint, start: IndexedBlock, head: BlockHeader, top: int
    ) -> PendingPage | None:
        taken = None if self._prefetcher is None else self._prefetcher.take(endpoint, start)
        if taken is None:
            return None
        last = taken.pending.page.last.header
        if last.number > top:
            # The chain was longer, or seemed longer, when the page was asked for.
            return None
        if last.number <= min(head.number, taken.head) - self._recent_blocks:
            return taken.pending
        # The page was near the head: the chain may have left the page's branch since.
        now = endpoint.find_header(last.number)
        return taken.pending if now is not None and now.hash == last.hash else None

    def _fetch(
        self, endpoint: Endpoint, head: BlockHeader, top: int, start: IndexedBlock
    ) -> VerifiedPage | None:
        width = self._ranges.setdefault(endpoint, RangeWidth(_FIRST_BLOCKS, self._most))
        first = start.header.number + 1
        deep = head.number - self._recent_blocks
        patience_ends = self._clock() + _PATIENCE_SECONDS
        while True:
            last = min(top, first + width.blocks - 1)
            last = min(last, deep) if first <= deep else min(last, first + BATCH_SIZE - 1)
            try:
                if first <= deep:
                    page = self._by_range(endpoint, start, last)
                else:
                    page = self._by_hash(endpoint, start, last, head)
            except RangeRefused as error:
                width.refused(last - first + 1, error.suggested_blocks)
                if first == last or self._clock() > patience_ends:
                    expected = "an answer over fewer blocks"
                    raise EndpointUnavailable(error.subject, expected, error.got) from error
                continue
            if page is not None:
                blocks = last - first + 1
                width.answered(blocks, _fitting(blocks, _answered_bytes(page.events)))
            return page

    def _by_range(self, endpoint: Endpoint, start: IndexedBlock, last: int) -> VerifiedPage | None:
        first = start.header.number + 1
        answered, logs = endpoint.blocks_with_logs(first, last, self._payload_logs.wanted)
        headers = check_links(endpoint, first, answered)
        if headers[0].parent_hash != start.header.hash:
            return None
        page = verified_page(endpoint, self._payload_logs, start, headers, logs)
        return self._established(endpoint, page, deep=True)

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
        page = fetch_page(endpoint, self._payload_logs, start, headers)
        return self._established(endpoint, page, deep=False)

    def _established(self, endpoint: Endpoint, page: VerifiedPage, deep: bool) -> VerifiedPage:
        """Return the part of a page that could be established, from its first block on."""
        headers = [block.header for block in page.blocks]
        logs = [placed.log for placed in page.events]
        established = self._prover.establish(endpoint, headers, logs, deep)
        blocks = page.blocks[: established.blocks]
        last = blocks[-1].header.number
        events = tuple(each for each in page.events if each.log.block_number <= last)
        return VerifiedPage(page.start, blocks, events, established.provenance)


def _answered_bytes(events: Sequence[PlacedEvent]) -> int:
    return sum(_JSON_BYTES_PER_LOG + 2 * len(placed.log.data) for placed in events)


def _fitting(blocks: int, answered_bytes: int) -> int:
    """Return how many blocks like these, which took so many bytes, make up a page."""
    return blocks * TARGET_BYTES // max(answered_bytes, 1)
