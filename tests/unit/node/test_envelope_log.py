"""Pages of a node's database, of the chain's originator and of others, behind any cursor."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chainkit.service.refusals import InvalidRequest
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.asked_by import ASKED_BY, AskedBy
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.types import Page, Selection
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import FakeNode

TOPICS = [b"\1%d" % number for number in range(450)]
"""More than one statement looks for."""
ALL_BYTES = 1 << 30
ROWS = [
    StoredEnvelope(
        node, number, number, random.Random(number * node).choice(TOPICS), None, b"e" * 9
    )
    for node in (100, 200)
    for number in range(1, 501)
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvelopeLog]:
    path: Path = tmp_path_factory.mktemp("log") / "node.db"
    node = FakeNode(FakeChain(), path)
    with node.store.writing() as connection:
        node.store.insert_envelopes(connection, ROWS)
    made = EnvelopeLog(node.store)
    yield made
    made.close()
    node.store.close()


@pytest.mark.conforms("N22", "N23")
@pytest.mark.parametrize("cursor", [{}, {100: 250}, {100: 499, 200: 7}, {0: 10**9, 300: 1}])
def test_page__by_topics_or_originators__gives_what_lies_behind_the_cursor_in_order(
    log: EnvelopeLog, cursor: dict[int, int]
) -> None:
    behind = [row for row in ROWS if row.sequence_id > cursor.get(row.originator_id, 0)]
    some = frozenset(TOPICS[:7])

    for selection, wanted in (
        (Selection(topics=frozenset(TOPICS), cursor=cursor), behind),
        (Selection(topics=some, cursor=cursor), [row for row in behind if row.topic in some]),
        (
            Selection(originator_ids=frozenset([200, 300]), cursor=cursor),
            [row for row in behind if row.originator_id == 200],
        ),
    ):
        assert log.page(selection, 2000, ALL_BYTES) == Page(wanted, is_last=True)
        assert log.page(selection, 5, ALL_BYTES) == Page(wanted[:5], is_last=len(wanted) < 5)
        # Cut by bytes, and never anything left out before the cut.
        for most_bytes in (0, 8, 9, 10, 9 * 30, 9 * 499 + 1):
            page = log.page(selection, 450, most_bytes)
            fit = most_bytes // 9
            is_last = len(wanted) <= fit and len(wanted) < 450
            assert page == Page(wanted[: min(max(fit, 1), 450)], is_last)


@pytest.mark.conforms("2.2.3-3", "2.2.4-3")
def test_page__payloads_of_the_chain_and_of_a_node_on_one_topic__has_both(tmp_path: Path) -> None:
    node = FakeNode(FakeChain(), tmp_path / "node.db")
    node.chain.mine([Post("commit"), Post("update", TopicKind.IDENTITY_UPDATE)])
    node.catch_up()
    topics = [post.kind.topic(post.identifier) for post in node.chain.head.posts]
    of_node = [StoredEnvelope(100, each, each, topics[each - 1], None, b"e" * 9) for each in (1, 2)]
    with node.store.writing() as connection:
        node.store.insert_envelopes(connection, of_node)

    with closing(EnvelopeLog(node.store)) as log:
        page = log.page(Selection(originator_ids=frozenset([0, 100])), 10, ALL_BYTES)
        of_group = log.page(Selection(topics=frozenset(topics[:1])), 10, ALL_BYTES)
    node.store.close()

    assert [(row.originator_id, row.topic) for row in page.rows] == [
        (originator_id, topic) for originator_id in (0, 100) for topic in topics
    ]
    assert [row.originator_id for row in of_group.rows] == [0, 100]


def test_read_page__more_bytes_than_an_answer_has__gives_at_least_one(log: EnvelopeLog) -> None:
    selection = Selection(originator_ids=frozenset([100]))

    for most_bytes, count in ((1, 1), (27, 3), (35, 3), (36, 4)):
        page = asyncio.run(log.read_page(selection, 100, most_bytes))
        assert list(page.rows) == ROWS[:count]
        assert not page.is_last


@pytest.mark.parametrize(
    ("limit", "most_bytes", "is_last"),
    [(11, 90, True), (11, 89, False), (10, 90, False), (9, 90, False), (11, 1, False)],
)
def test_read_page__end_of_what_is_stored__is_the_last_only_if_nothing_was_cut(
    log: EnvelopeLog, limit: int, most_bytes: int, is_last: bool
) -> None:
    selection = Selection(originator_ids=frozenset([200]), cursor={200: 490})

    page = asyncio.run(log.read_page(selection, limit, most_bytes))

    assert page.is_last is is_last


def test_newest__more_bytes_than_an_answer_has__is_refused(log: EnvelopeLog) -> None:
    newest = {row.topic: row for row in sorted(ROWS, key=lambda row: row.sequence_id)}
    size = 9 * len(newest)

    assert asyncio.run(log.newest(TOPICS, size)) == newest
    with pytest.raises(InvalidRequest, match="ask for fewer at a time"):
        asyncio.run(log.newest(TOPICS, size - 1))


def test_in_thread__one_caller_with_many_long_requests__leaves_threads_to_others(
    log: EnvelopeLog,
) -> None:
    async def story() -> None:
        hold, running = threading.Event(), threading.Semaphore(0)

        def long() -> None:
            running.release()
            hold.wait(60)

        async def asked(name: str, read: Callable[[], None]) -> None:
            ASKED_BY.set(AskedBy(name, lambda parts: None))
            await log.in_thread(read)

        many = [asyncio.create_task(asked("address 1", long)) for _ in range(8)]
        for _ in range(2):
            await asyncio.to_thread(running.acquire)
        # A caller that gives up gets no further thread before its own has ended.
        for task in many[:2]:
            task.cancel()
        await asyncio.wait_for(asked("address 2", lambda: None), 60)
        assert not running.acquire(blocking=False)
        hold.set()
        await asyncio.gather(*many[2:])

    asyncio.run(story())
