"""A stream against a log that grows, forks and is slow, under a seed: each envelope once."""

from __future__ import annotations

import asyncio
import random

import pytest

from chainkit.service.refusals import TakenBack
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.live.hub import Hub
from chainkit_node.live.stream import Stream, StreamStatus
from chainkit_node.types import Page, Selection

TOPICS = (b"\x00a", b"\x00b", b"\x02c")
NODES = (0, 100, 200)


class Log:
    """The database and its writer: rows are stored, then published, as a node does."""

    def __init__(self, hub: Hub, chance: random.Random) -> None:
        self.hub = hub
        self.chance = chance
        self.rows: list[StoredEnvelope] = []
        self.last = dict.fromkeys(NODES, 0)

    def commit(self, count: int = 1) -> None:
        rows = []
        for _ in range(count):
            node = self.chance.choice(NODES)
            self.last[node] += 1
            topic = self.chance.choice(TOPICS)
            content = b"%d" % self.chance.getrandbits(64)
            rows.append(StoredEnvelope(node, self.last[node], 0, topic, None, content))
        self.rows += rows
        self.hub.publish(rows)

    def reorg(self, depth: int) -> None:
        ancestor = max(0, self.last[0] - depth)
        self.last[0] = ancestor
        self.rows = [row for row in self.rows if row.originator_id or row.sequence_id <= ancestor]
        self.hub.retract({0: ancestor})

    async def read(self, selection: Selection, limit: int) -> Page:
        await self.pause()
        found = sorted(row for row in self.rows if wants(selection, row))
        # A page of large envelopes is shorter, and not the last for that.
        count = self.chance.choice([limit, self.chance.randrange(1, limit + 1)])
        # The answer is on its way while the writer goes on.
        await self.pause()
        return Page(found[:count], is_last=len(found) <= count)

    async def pause(self) -> None:
        for _ in range(self.chance.randrange(3)):
            await asyncio.sleep(0)


def wants(selection: Selection, row: StoredEnvelope) -> bool:
    is_of_it = row.topic in selection.topics or row.originator_id in selection.originator_ids
    return is_of_it and row.sequence_id > selection.cursor.get(row.originator_id, 0)


async def play(
    seed: int, reorgs: bool, goes_back: bool = False
) -> tuple[Log, list[StoredEnvelope], Selection, bool]:
    chance = random.Random(seed)
    hub = Hub(queue_bytes=chance.choice([20, 200, 100_000]))
    log = Log(hub, chance)
    log.commit(chance.randrange(30))
    cursor = {node: chance.randrange(5) for node in NODES if chance.random() < 0.5}
    if chance.random() < 0.5:
        selection = Selection(topics=frozenset(chance.sample(TOPICS, 2)), cursor=cursor)
    else:
        selection = Selection(originator_ids=frozenset(chance.sample(NODES, 2)), cursor=cursor)
    page = chance.randrange(1, 8)
    stream = Stream(hub, log.read, [selection], page, 0.01, goes_back=goes_back)
    got: list[StoredEnvelope] = []
    was_taken_back = False

    async def reads() -> None:
        nonlocal was_taken_back
        try:
            async for batch in stream.batches():
                if not isinstance(batch, StreamStatus):
                    got.extend(batch)
                elif batch is StreamStatus.WAITING and done.is_set():
                    return
                await log.pause()
        except TakenBack as error:
            was_taken_back = True
            assert error.cursor is not None
            last = error.cursor[0]
            has_later = any(row.originator_id == 0 and row.sequence_id > last for row in got)
            assert has_later or cursor.get(0, 0) > last

    done = asyncio.Event()
    reader = asyncio.create_task(reads())
    for _ in range(40):
        if reorgs and chance.random() < 0.1:
            log.reorg(chance.randrange(1, 4))
        else:
            log.commit(chance.randrange(1, 6))
        await log.pause()
    done.set()
    await reader
    return log, got, selection, was_taken_back


@pytest.mark.conforms("N24", "N25")
@pytest.mark.parametrize("seed", range(60))
def test_batches__log_grows_while_it_is_read__gives_each_envelope_once_in_order(seed: int) -> None:
    log, got, selection, _ = asyncio.run(play(seed, reorgs=False))

    wanted = [row for row in log.rows if wants(selection, row)]
    assert sorted(got) == sorted(wanted)
    for node in NODES:
        ids = [row.sequence_id for row in got if row.originator_id == node]
        assert ids == sorted(set(ids))


@pytest.mark.conforms("N24")
def test_batches__reorgs__reader_keeps_nothing_of_the_old_branch_or_is_told() -> None:
    endings = set()
    for seed in range(100):
        log, got, selection, was_taken_back = asyncio.run(play(seed, reorgs=True))
        endings.add(was_taken_back)
        if not was_taken_back:
            assert sorted(got) == sorted(row for row in log.rows if wants(selection, row)), seed
    assert endings == {True, False}


def test_batches__reorgs_and_a_stream_that_goes_back__reader_gets_all_above_its_cursor() -> None:
    has_gone_back = False
    for seed in range(100):
        log, got, selection, was_taken_back = asyncio.run(play(seed, True, goes_back=True))
        assert not was_taken_back
        wanted = [row for row in log.rows if wants(selection, row)]
        held = {(row.originator_id, row.sequence_id): row for row in got}
        # The last that came under an id is that of the branch that stays.
        assert [held.get((row.originator_id, row.sequence_id)) for row in wanted] == wanted, seed
        assert all(wants(selection, row) for row in got)
        for node in NODES[1:]:
            ids = [row.sequence_id for row in got if row.originator_id == node]
            assert ids == sorted(set(ids))
        has_gone_back |= len(got) > len(wanted)
    assert has_gone_back


def test_batches__two_selections_with_their_own_cursors__each_goes_on_from_its_own() -> None:
    async def reads() -> list[StoredEnvelope]:
        hub = Hub()
        log = Log(hub, random.Random(1))
        log.rows = [StoredEnvelope(0, each, 0, TOPICS[each % 2], None, b"") for each in range(1, 9)]
        selections = [
            Selection(topics=frozenset([TOPICS[0]]), cursor={0: 5}),
            Selection(topics=frozenset([TOPICS[1]]), cursor={0: 2}),
        ]
        stream = Stream(hub, log.read, selections, 2, 60)
        got: list[StoredEnvelope] = []
        async for batch in stream.batches():
            if batch is StreamStatus.CATCHUP_COMPLETE:
                return got
            if not isinstance(batch, StreamStatus):
                got.extend(batch)
        return got

    ids = [row.sequence_id for row in asyncio.run(reads())]
    assert ids == [6, 8, 3, 5, 7]
