"""Messages that wait in pages until the payload of the chain that they name is here (ADR 55)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.types import NANOSECONDS_PER_SECOND, Place, TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.hub import Hub
from chainkit_node.live.stream import Stream, StreamStatus
from chainkit_node.storage.held_back import LONGEST_NS
from chainkit_node.types import Page, Selection
from support import publishes
from support.chains.fake_chain import FakeChain, Post
from support.indexer.fake_node import KEY, FakeNode

GROUP, OTHER = (Post(name, id_length=16) for name in ("group", "other"))
TOPICS = [TopicKind.GROUP_MESSAGE.topic(each.named_identifier) for each in (GROUP, OTHER)]
ANN, BEN = 200, 300
"""Other nodes, whose messages are here."""


class Node:
    """A database with a commit of each group, under the ids 1 and 2."""

    def __init__(self, path: Path) -> None:
        self.chain = FakeChain()
        self.indexer = FakeNode(self.chain, path)
        self.log = EnvelopeLog(self.indexer.store)
        self.hub = Hub()
        self.chain.mine([GROUP, OTHER])
        self.indexer.catch_up()

    def takes(self, place: Place, names: int, post: Post = GROUP, age_ns: int = 0) -> None:
        """Store another node's message that names an id of the chain."""
        node_id, _ = place
        time_ns = time.time_ns() - age_ns
        message = publishes.group_message(identifier=post.named_identifier, seen={0: names})
        payer = publishes.paid(message, node_id)
        unsigned = unsigned_originated(OriginatedEnvelope(*place, time_ns, payer, None))
        topic = TopicKind.GROUP_MESSAGE.topic(post.named_identifier)
        row = StoredEnvelope(*place, time_ns, topic, None, sign_originated(unsigned, KEY))
        with self.indexer.store.writing() as connection:
            self.indexer.store.insert_envelopes(connection, [row])
        self.hub.publish([row])

    def mines(self, *posts: Post) -> None:
        """Follow a block of commits, and publish these."""
        self.chain.mine([*posts])
        before = self.log.chain_cursor()
        self.indexer.catch_up()
        behind = Selection(originator_ids=frozenset([0]), cursor=before)
        self.hub.publish(self.log.page(behind, 100, 10**6).rows)

    def shows(
        self, cursor: Mapping[int, int], limit: int = 100, holds_back: bool = True
    ) -> list[Place]:
        """Return the places of a page of both topics behind a cursor."""
        selection = Selection(topics=frozenset(TOPICS), cursor=cursor)
        page = self.log.page(selection, limit, 10**6, holds_back=holds_back)
        return [(row.originator_id, row.sequence_id) for row in page.rows]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node.db")
    yield made
    made.log.close()
    made.indexer.store.close()


def test_page__message_names_a_commit_that_is_not_here__leaves_out_it_and_what_is_behind_it(
    node: Node,
) -> None:
    node.takes((ANN, 1), names=1)
    node.takes((ANN, 2), names=3)
    node.takes((ANN, 3), names=2, post=OTHER)
    node.takes((BEN, 1), names=1)
    node.takes((BEN, 2), names=2, post=OTHER)
    chain, ann, ben = [(0, 1), (0, 2)], [(ANN, 1), (ANN, 2), (ANN, 3)], [(BEN, 1), (BEN, 2)]

    assert node.shows({}) == [*chain, ann[0], *ben]
    assert node.shows({}, limit=4) == [*chain, ann[0], ben[0]]
    assert node.shows({0: 2, ANN: 1}, limit=1) == [ben[0]]
    # Readers of streams put it aside, and repairs ask by originators or for a range.
    assert node.shows({}, holds_back=False) == [*chain, *ann, *ben]
    assert node.shows({0: 3}) == [*ann, *ben]

    node.chain.mine([GROUP])
    node.indexer.catch_up()
    assert node.shows({0: 2, ANN: 1, BEN: 2}) == [(0, 3), *ann[1:]]


def test_page__reorg_takes_the_commit_back__leaves_the_message_out_until_the_commit_is_here_again(
    node: Node,
) -> None:
    node.takes((ANN, 1), names=1)

    node.chain.fork(1, [], [])
    while node.log.chain_cursor() != {0: 0}:
        node.indexer.step()
    assert node.shows({}) == []
    # A reader that has read the commit has all that the message names.
    assert node.shows({0: 1}) == [(ANN, 1)]
    node.chain.mine([GROUP])
    node.indexer.catch_up()
    assert node.shows({}) == [(0, 1), (ANN, 1)]


def test_page__more_than_a_page_behind__has_each_message_before_commits_of_later_epochs(
    node: Node,
) -> None:
    # Dated as the commits: their chain began long ago.
    age_ns = time.time_ns() - node.chain.blocks[-1].timestamp * NANOSECONDS_PER_SECOND
    for number in range(1, 4):
        node.takes((ANN, number), names=1, age_ns=age_ns)
        node.takes((BEN, number), names=1, age_ns=age_ns)
    node.mines(*[GROUP] * 5)
    node.takes((ANN, 4), names=3, age_ns=age_ns)
    read: list[Place] = []
    while page := node.shows({0: 2} | dict(read), limit=2):
        read += page

    texts = [(one, number) for number in range(1, 4) for one in (ANN, BEN)]
    assert read == [*texts, (0, 3), (ANN, 4), *[(0, number) for number in range(4, 8)]]


def test_page__named_commit_never_comes__has_the_message_after_ten_minutes(node: Node) -> None:
    node.takes((ANN, 1), names=9, age_ns=LONGEST_NS)
    node.takes((BEN, 1), names=9, age_ns=LONGEST_NS - 60 * 10**9)

    assert node.shows({0: 2}) == [(ANN, 1)]


def test_stream__message_names_a_commit_that_is_not_here__sends_it_and_what_is_behind_it_later(
    node: Node,
) -> None:
    async def read(selection: Selection, limit: int) -> Page:
        return node.log.page(selection, limit, 10**6, holds_back=True)

    async def sent() -> None:
        topics = Selection(topics=frozenset(TOPICS))
        batches = Stream(node.hub, read, [topics], 100, 0.01, goes_back=True).batches()

        async def then(*wanted: Place) -> None:
            found: list[Place] = []
            async for batch in batches:
                if isinstance(batch, StreamStatus):
                    if batch is StreamStatus.WAITING and len(found) >= len(wanted):
                        break
                else:
                    found += [(row.originator_id, row.sequence_id) for row in batch]
            assert found == list(wanted)

        node.takes((ANN, 1), names=3)
        await then((0, 1), (0, 2))
        node.takes((ANN, 2), names=1)
        node.takes((BEN, 1), names=4)
        # A later message of one that waits: today's clients drop what has a lower id then.
        node.takes((BEN, 2), names=1)
        await then()
        node.mines(GROUP)
        await then((0, 3), (ANN, 1), (ANN, 2))
        node.mines(GROUP)
        await then((0, 4), (BEN, 1), (BEN, 2))
        node.takes((ANN, 3), names=4)
        await then((ANN, 3))

    asyncio.run(sent())
