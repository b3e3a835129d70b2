import gc
import threading
import time
import weakref
from threading import Event
from typing import Any

import pytest

from chainkit.chain import Endpoint
from chainkit.errors import InconsistentAnswer
from chainkit.signatures import SigningKey
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.build import PendingPage, submit_page
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.prefetch import Prefetcher
from chainkit_indexer.follow.signing import Signer
from chainkit_indexer.types import IndexedBlock, VerifiedPage
from support.chains.fake_chain import FakeChain, Post

TOP = 12
KEY = SigningKey(bytes([7]) * 32)


class Pages:
    """Pages of two blocks each, and what was asked for."""

    def __init__(self) -> None:
        self.chain = FakeChain()
        self.chain.mine(*[[Post(str(number))] for number in range(10)])
        settings = IndexerSettings(self.chain.deployment, page_blocks=2)
        self.reader = PageReader(settings, Signer(KEY), recent_blocks=0)
        self.prefetcher = Prefetcher(self._begin)
        self.fetched: list[int] = []
        self.pending: list[int] = []
        self.error: Exception | None = None
        self.was_waited_for = False
        self.was_asked = Event()
        self.hold = Event()
        self.hold.set()
        self.head = self.chain.endpoint.head()

    def fetch(self, start: IndexedBlock) -> VerifiedPage | None:
        hold = self.hold
        self.was_asked.set()
        if not hold.wait(10):
            self.was_waited_for = True
        if self.error is not None:
            raise self.error
        page = self._page(start)
        self.fetched.append(start.header.number + 1)
        return page

    def first(self) -> VerifiedPage:
        before = self.chain.deployment.first_block - 1
        return self._page(IndexedBlock(self.chain.endpoint.header(before), {0: 0}))

    def prefetch(self, endpoint: Endpoint, page: VerifiedPage) -> None:
        self.prefetcher.prefetch(endpoint, page.last, self.head.number, TOP, self.fetch)

    def wait(self) -> None:
        for future, _ in self.prefetcher._pages:
            future.result()

    def take(self, endpoint: Endpoint, page: VerifiedPage) -> list[int]:
        taken = self.prefetcher.take(endpoint, page.last)
        return [] if taken is None else [each.header.number for each in taken.pending.page.blocks]

    def _page(self, start: IndexedBlock) -> VerifiedPage:
        begun = self.reader.read(self.chain.endpoint, start, self.head, TOP)
        assert begun is not None
        return begun.page

    def _begin(self, page: VerifiedPage) -> PendingPage:
        self.pending.append(page.blocks[0].header.number)
        return submit_page(page, Signer(KEY))


def test_prefetch__endpoint_answers__three_pages_are_fetched_and_begun() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.prefetch(endpoint, first)
    pages.wait()

    assert (pages.fetched, pages.pending) == ([5, 7, 9], [5, 7, 9])
    assert pages.take(endpoint, first) == [5, 6]
    assert pages.fetched == [5, 7, 9]


def test_prefetch__page_was_taken__one_more_is_fetched() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.prefetch(endpoint, first)
    taken = pages.prefetcher.take(endpoint, first.last)
    assert taken is not None
    pages.prefetch(endpoint, taken.pending.page)
    pages.wait()

    assert (pages.fetched, pages.pending) == ([5, 7, 9, 11], [5, 7, 9, 11])
    assert pages.take(endpoint, taken.pending.page) == [7, 8]


def test_last_of_page__page_is_there__is_its_last_block() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    assert pages.prefetcher.last_of_page(endpoint, first.last) is None
    pages.hold.clear()
    pages.prefetch(endpoint, first)
    assert pages.prefetcher.last_of_page(endpoint, first.last) is None

    pages.hold.set()
    pages.wait()
    assert pages.prefetcher.last_of_page(endpoint, first.last) == 6
    assert pages.prefetcher.last_of_page(endpoint, first.start) is None


def test_prefetch__endpoint_is_slow__returns_and_the_page_is_waited_for_when_it_is_taken() -> None:
    pages = Pages()
    pages.hold.clear()
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.prefetch(endpoint, first)
    assert pages.pending == []

    pages.hold.set()
    assert pages.take(endpoint, first) == [5, 6]


def test_prefetch__error__is_raised_by_the_step_that_needs_the_page() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.error = InconsistentAnswer("logs", "all", "some")
    pages.prefetch(endpoint, first)

    with pytest.raises(InconsistentAnswer):
        pages.take(endpoint, first)
    pages.error = None
    assert pages.take(endpoint, first) == []


def test_prefetch__last_page__asks_for_nothing_above() -> None:
    pages = Pages()
    page = pages.first()
    while page.last.header.number < TOP:
        pages.prefetch(pages.chain.endpoint, page)
        taken = pages.prefetcher.take(pages.chain.endpoint, page.last)
        assert taken is not None
        page = taken.pending.page
    pages.prefetch(pages.chain.endpoint, page)

    assert (pages.fetched, pages.pending) == ([5, 7, 9, 11], [5, 7, 9, 11])


@pytest.mark.parametrize("is_slow", [False, True], ids=["begun", "being fetched"])
def test_take__another_endpoint__gets_nothing_of_the_first(is_slow: bool) -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    other = Endpoint(endpoint.transport, "other")
    if is_slow:
        pages.hold.clear()
    pages.prefetch(endpoint, first)

    assert pages.take(other, first) == []
    assert pages.take(endpoint, first) == []
    pages.hold.set()


def test_take__cursor_stands_elsewhere__drops_what_is_there() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.prefetch(endpoint, first)
    taken: Any = pages.prefetcher.take(endpoint, first.last)
    pages.prefetch(endpoint, taken.pending.page)

    # The page could not be committed, so the step begins again where it was.
    assert pages.take(endpoint, first) == []
    pages.prefetch(endpoint, first)
    assert pages.take(endpoint, first) == [5, 6]


def test_take__fetch_of_a_page_that_is_dropped_hangs__nobody_waits_behind_it() -> None:
    before = set(threading.enumerate())
    pages = Pages()
    [left] = set(threading.enumerate()) - before
    endpoint, first = pages.chain.endpoint, pages.first()
    pages.hold.clear()
    pages.prefetch(endpoint, first)
    assert pages.was_asked.wait(10)
    hanging, pages.hold = pages.hold, Event()
    pages.hold.set()
    second = pages._page(first.last)

    assert pages.take(endpoint, second) == []
    pages.prefetch(endpoint, second)
    assert pages.take(endpoint, second) == [7, 8]
    assert not pages.was_waited_for

    # Nobody wants what comes in the end: it is not signed, and nothing is asked for after it.
    hanging.set()
    left.join(10)
    assert not left.is_alive()
    pages.wait()
    assert pages.pending == [7, 9, 11]


class Answer:
    """An endpoint's answer, in memory."""


def test_take__failed_fetch__keeps_nothing_of_the_answer() -> None:
    pages = Pages()
    endpoint, first = pages.chain.endpoint, pages.first()
    answers: list[weakref.ref[Answer]] = []

    def fail(start: IndexedBlock) -> VerifiedPage | None:
        answer = Answer()
        answers.append(weakref.ref(answer))
        raise InconsistentAnswer("logs", "all", "some")

    gc.disable()
    try:
        for _ in range(3):
            pages.prefetcher.prefetch(endpoint, first.last, TOP, TOP, fail)
            with pytest.raises(InconsistentAnswer):
                pages.prefetcher.take(endpoint, first.last)
        assert len(answers) == 3
        assert [answer() for answer in answers] == [None] * 3
    finally:
        gc.enable()


def test_worker__reader_is_dropped__ends() -> None:
    before = set(threading.enumerate())
    pages = Pages()
    pages.prefetch(pages.chain.endpoint, pages.first())
    [worker] = set(threading.enumerate()) - before
    del pages

    deadline = time.monotonic() + 10
    while worker.is_alive() and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not worker.is_alive()
