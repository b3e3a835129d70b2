"""The feed between the indexer's steps and the hub, with a database that is away now and then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreUnavailable
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.follower import InboxFollower
from chainkit_node.live import feed
from chainkit_node.live.feed import ChainFeed, DatabaseFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.storage.gaps import GapRow, GapState, fill_gaps, insert_gap
from chainkit_node.types import Selection
from support.chains.fake_chain import FakeChain, Post, update
from support.immediate_loop import ImmediateLoop
from support.indexer.fake_node import FakeNode
from support.seeds import seeds

SEEDS = seeds(fixed=3, of_day=1, in_soak=100)
ALL = Selection(originator_ids=frozenset([0]))
OWN = 100


class Node:
    def __init__(
        self, path: Path | str, monkeypatch: pytest.MonkeyPatch, chain: FakeChain | None = None
    ) -> None:
        self.chain = chain or FakeChain()
        self.indexer = FakeNode(self.chain, path)
        self.log = EnvelopeLog(self.indexer.store)
        self.hub = Hub()
        loop: Any = ImmediateLoop()
        self.observers = (
            InboxFollower(self.indexer.store, self.log),
            ChainFeed(self.log, self.hub, Handover(loop)),
        )
        self.is_away = False
        reading = Store.reading

        def may_be_away(store: Store) -> Any:
            if self.is_away:
                raise StoreUnavailable("database", "an answer", "none")
            return reading(store)

        monkeypatch.setattr(Store, "reading", may_be_away)

    def step(self, is_away: bool = False) -> None:
        result = self.indexer.step()
        self.is_away = is_away
        for observer in self.observers:
            observer.succeeded(result, 0)
        self.is_away = False


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    made = Node(tmp_path / "node.db", monkeypatch)
    yield made
    made.log.close()
    made.indexer.store.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_succeeded__reorgs_and_a_database_that_is_away__hands_on_each_envelope_once(
    node: Node, seed: int
) -> None:
    async def play() -> None:
        chance = random.Random(seed)
        stream = node.hub.subscribe([ALL])
        got: list[Any] = []
        for number in range(40):
            posts = [Post(f"{number} {n}") for n in range(chance.randrange(3))]
            if chance.random() < 0.2:
                posts.append(update(f"update {number}"))
            if chance.random() < 0.15 and number > 3:
                node.chain.fork(chance.randrange(1, 3), posts, [], [])
            else:
                node.chain.mine(posts)
            for _ in range(chance.randrange(1, 4)):
                node.step(is_away=chance.random() < 0.3)
                if stream.taken_back is not None:
                    # Its queue contains what came after the reorg.
                    last = stream.taken_back[0]
                    got = [row for row in got if row.sequence_id <= last]
                    stream.taken_back = None
                got += stream.take(1000)
                stream.sends(got)
        for _ in range(5):
            node.step()
        got += stream.take(1000)
        assert not stream.is_behind
        assert got == list(node.log.page(ALL, 1000, 1 << 30).rows)

    asyncio.run(play())


@pytest.mark.conforms("N24", "N25")
@pytest.mark.parametrize("seed", SEEDS)
def test_look__another_process_commits_and_reorgs__hands_on_each_envelope_once(
    node: Node, seed: int
) -> None:
    async def play() -> None:
        chance = random.Random(seed)
        loop: Any = ImmediateLoop()
        hub = Hub()
        feed = DatabaseFeed(node.log, hub, Handover(loop))
        both = Selection(originator_ids=frozenset([0, OWN]))
        stream = hub.subscribe([both])
        got: list[Any] = []
        count = 0
        for number in range(40):
            posts = [Post(f"{number} {n}") for n in range(chance.randrange(3))]
            if chance.random() < 0.15 and number > 3:
                node.chain.fork(chance.randrange(1, 3), posts, [], [])
            else:
                node.chain.mine(posts)
            for _ in range(chance.randrange(1, 6)):
                node.step()
                if chance.random() < 0.5:
                    count += 1
                    row = StoredEnvelope(OWN, count, count, b"\1topic", None, b"%d" % count)
                    with node.indexer.store.writing() as connection:
                        node.indexer.store.insert_envelopes(connection, [row])
                if chance.random() < 0.5:
                    feed.look()
                if stream.taken_back is not None:
                    last = stream.taken_back[0]
                    got = [row for row in got if row.originator_id or row.sequence_id <= last]
                    stream.taken_back = None
                got += stream.take(1000)
                stream.sends(got)
        for _ in range(5):
            node.step()
        feed.look()
        if stream.taken_back is not None:
            last = stream.taken_back[0]
            got = [row for row in got if row.originator_id or row.sequence_id <= last]
        got += stream.take(1000)
        assert not stream.is_behind
        for each in (0, OWN):
            stored = node.log.page(Selection(originator_ids=frozenset([each])), 1000, 1 << 30)
            assert [row for row in got if row.originator_id == each] == list(stored.rows)

    asyncio.run(play())


@pytest.mark.conforms("N25")
def test_look__another_process_fills_a_gap__tells_streams_that_have_what_lies_above(
    node: Node,
) -> None:
    async def play() -> None:
        loop: Any = ImmediateLoop()
        hub, store = Hub(), node.indexer.store
        feed = DatabaseFeed(node.log, hub, Handover(loop))
        stream = hub.subscribe([Selection(originator_ids=frozenset([OWN]))])
        rows = [StoredEnvelope(OWN, n, n, b"\1topic", None, b"%d" % n) for n in range(1, 6)]
        with store.writing() as connection:
            store.insert_envelopes(connection, [rows[0], rows[4]])
            insert_gap(connection, GapRow(OWN, 2, 4, GapState.ASKED, 1))
        feed.look()
        stream.sends(stream.take(1000))

        with store.writing() as connection:
            store.insert_envelopes(connection, rows[2:4])
            fill_gaps(connection, OWN, [3, 4], 2)
        feed.look()

        assert stream.taken_back == {OWN: 2}

    asyncio.run(play())


def test_succeeded__refused_update__reaches_readers_of_the_order_alone(node: Node) -> None:
    async def play() -> None:
        post = update("no action")
        topic = TopicKind.IDENTITY_UPDATE.topic(post.identifier)
        order = node.hub.subscribe([ALL])
        inbox = node.hub.subscribe([Selection(topics=frozenset([topic]))])
        node.chain.mine([post])
        node.step()
        assert [row.topic for row in order.take(1000)] == [topic]
        assert inbox.take(1000) == []

    asyncio.run(play())


def test_restart__reorg_meanwhile__first_step_tells_the_streams_that_began_before_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        for number in range(4):
            node.chain.mine([Post(f"{number}")])
        node.indexer.catch_up()
        node.log.close()
        node.indexer.store.close()
        node.chain.fork(2, [Post("another")], [], [], [])

        again = Node(node.indexer.path, monkeypatch, node.chain)
        # Before its first step it serves what it served before it ended.
        reading = again.hub.subscribe([ALL])
        reading.sends(again.log.page(ALL, 1000, 1 << 30).rows)
        going_on = again.hub.subscribe([Selection(originator_ids=frozenset([0]), cursor={0: 4})])
        began_below = again.hub.subscribe([Selection(originator_ids=frozenset([0]), cursor={0: 2})])
        again.step()

        assert [each.taken_back for each in (reading, going_on, began_below)] == [
            *({0: 2}, {0: 2}, None)
        ]
        again.log.close()
        again.indexer.store.close()

    asyncio.run(play())


def test_succeeded__more_than_is_pushed__lets_each_stream_read_for_itself(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_node.live.feed._MOST_PUSHED", 2)

    async def play() -> None:
        stream = node.hub.subscribe([ALL])
        node.chain.mine([Post("a"), Post("b"), Post("c")])
        node.step()
        assert stream.is_behind
        stream.catch_up()
        node.chain.mine([Post("d"), Post("e")])
        node.step()
        assert [row.sequence_id for row in stream.take(1000)] == [4, 5]

    asyncio.run(play())


def test_succeeded__large_commit__lets_the_streams_read_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        stream = node.hub.subscribe([ALL])
        node.step()
        node.chain.mine([Post("group")])
        node.step()
        [row] = stream.take(1000)
        monkeypatch.setattr(feed, "_MOST_PUSHED_BYTES", 2 * len(row.envelope) - 1)
        node.chain.mine([Post("group")])
        node.step()
        assert (len(stream.take(1000)), stream.is_behind) == (1, False)
        node.chain.mine([Post("group"), Post("group")])
        node.step()
        assert (stream.take(1000), stream.is_behind) == ([], True)

    asyncio.run(play())
