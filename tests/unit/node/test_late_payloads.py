"""Payloads that come below others, under sparse sequence ids (ADR 50), for inboxes and streams."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.inboxes.follower import InboxFollower
from chainkit_node.live.feed import ChainFeed, DatabaseFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub, Subscription
from chainkit_node.types import Selection
from support.chains.fake_chain import Post, SparseChain, update
from support.immediate_loop import ImmediateLoop
from support.indexer.followed_inboxes import (
    ANN,
    BEN,
    BEN_ADDED,
    BEN_REVOKED,
    CLEO,
    CREATED,
    INBOX,
    OTHER_CREATED,
    OTHER_INBOX,
    Node,
    UpdatePost,
)
from support.seeds import seeds

SEEDS = seeds(fixed=3, of_day=1, in_soak=100)
ALL = frozenset([0, 1])


class LateNode(Node):
    """A node on a chain whose posts name their ids."""

    chain: SparseChain

    def __init__(self, path: Path) -> None:
        super().__init__(path, SparseChain())

    def mine_at(self, **posts: UpdatePost) -> None:
        """Mine updates under ids: each argument's name is ``at_`` and the id."""
        for name, post in posts.items():
            self.chain.ids[post.name] = int(name.removeprefix("at_"))
        self.mine(*posts.values())

    def close(self) -> None:
        self.log.close()
        self.indexer.store.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LateNode]:
    made = LateNode(tmp_path / "node.db")
    yield made
    made.close()


def test_follow__creation_comes_below_what_builds_on_it__all_is_judged_again(
    node: LateNode,
) -> None:
    node.mine_at(at_400=BEN_ADDED, at_1000=BEN_REVOKED, at_1001=OTHER_CREATED)
    assert [each[0] for each in node.refused()] == [400, 1000]

    node.mine_at(at_17=CREATED)

    assert node.refused() == []
    assert node.inbox_of(ANN, BEN, CLEO) == [INBOX.hex(), None, OTHER_INBOX.hex()]


def test_follow__killed_before_a_late_update_is_judged__judges_it_afterwards(
    node: LateNode,
) -> None:
    node.mine_at(at_400=BEN_ADDED)
    node.chain.ids[CREATED.name] = 17
    node.chain.mine([CREATED])
    node.indexer.catch_up()
    node.start()

    node.idle()

    assert node.inbox_of(ANN, BEN) == [INBOX.hex()] * 2


def test_follow__reorg_takes_back_a_late_update__what_built_on_it_is_refused_again(
    node: LateNode,
) -> None:
    node.mine_at(at_400=BEN_ADDED)
    node.mine_at(at_17=CREATED)
    assert node.inbox_of(BEN) == [INBOX.hex()]

    node.chain.ids |= {"other": 500}
    node.chain.fork(1, [Post("other")])
    node.catch_up()

    assert node.inbox_of(ANN, BEN) == [None, None]
    assert [each[0] for each in node.refused()] == [400]


class Reader:
    """A stream as ``Stream`` reads it: it goes back where it is told to."""

    def __init__(self, node: LateNode, hub: Hub) -> None:
        self.node = node
        self.stream: Subscription = hub.subscribe([Selection(originator_ids=ALL)])
        self.got: dict[tuple[int, int], StoredEnvelope] = {}

    def read(self) -> None:
        if self.stream.taken_back is not None:
            back = self.stream.taken_back
            self.got = {k: row for k, row in self.got.items() if k[1] <= back.get(k[0], k[1])}
            self.stream.go_back()
        self._take(self.stream.take(1000))
        if self.stream.is_behind:
            self.stream.catch_up()
            behind = Selection(originator_ids=ALL, cursor=self._cursor())
            self._take(self.node.log.page(behind, 1000, 1 << 30).rows)

    def _take(self, rows: Any) -> None:
        for row in rows:
            if row.sequence_id > self._cursor().get(row.originator_id, 0):
                self.got[row.originator_id, row.sequence_id] = row
                self.stream.sends([row])

    def _cursor(self) -> dict[int, int]:
        return {each: max(n for o, n in self.got if o == each) for each in {o for o, _ in self.got}}


@pytest.mark.parametrize("seed", SEEDS)
def test_feeds__ids_in_any_order_and_reorgs__streams_end_with_what_is_stored(
    node: LateNode, seed: int
) -> None:
    async def play() -> None:
        chance = random.Random(seed)
        ids = chance.sample(range(1, 10_000), 200)
        loop: Any = ImmediateLoop()
        hubs = Hub(), Hub()
        feeds = [ChainFeed(node.log, hubs[0], Handover(loop))]
        other = DatabaseFeed(node.log, hubs[1], Handover(loop))
        follower = InboxFollower(node.indexer.store, node.log)
        readers = [Reader(node, hub) for hub in hubs for _ in range(2)]
        for number in range(25):
            posts = [Post(f"{number} {n}") for n in range(chance.randrange(3))]
            if chance.random() < 0.4:
                posts.append(update(f"update {number}"))
            node.chain.ids |= {post.name: ids.pop() for post in posts}
            if chance.random() < 0.15 and number > 3:
                node.chain.fork(chance.randrange(1, 3), posts, [], [])
            else:
                node.chain.mine(posts)
            for _ in range(chance.randrange(1, 4)):
                result = node.indexer.step()
                for observer in (follower, *feeds):
                    observer.succeeded(result, 0)
                if chance.random() < 0.5:
                    other.look()
                for reader in readers[::2]:
                    reader.read()
        for _ in range(5):
            result = node.indexer.step()
            for observer in (follower, *feeds):
                observer.succeeded(result, 0)
        other.look()
        stored = node.log.page(Selection(originator_ids=ALL), 1000, 1 << 30).rows
        for reader in readers:
            reader.read()
            reader.read()
            assert [reader.got[key] for key in sorted(reader.got)] == list(stored)
        assert len(stored) > 10

    asyncio.run(play())
