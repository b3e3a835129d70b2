"""No page lets one of today's clients drop a message, however a reorg has dated the commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope, in_time_order
from chainkit_node.storage.epoch_order import in_epoch_order
from support import mls, publishes
from support.indexer.fake_node import KEY
from support.seeds import seeds

CHAIN, ANN, BEN = 0, 200, 300
TOPIC = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)


SECOND = 10**9


class Story:
    """Commits and messages of a group; ``names`` has what each row names of the chain."""

    def __init__(self) -> None:
        self.names: dict[StoredEnvelope, int] = {}
        self._ids = dict.fromkeys((CHAIN, ANN, BEN), 0)

    def commit(self, time_ns: int) -> None:
        """Store a commit, each of which begins an epoch."""
        self._store(CHAIN, time_ns, self._ids[CHAIN], mls.COMMIT)

    def message(self, node_id: int, time_ns: int, name: int) -> None:
        """Store a message of the epoch that a commit began."""
        self._store(node_id, time_ns, name, mls.APPLICATION)

    def _store(self, originator_id: int, time_ns: int, name: int, content_type: int) -> None:
        self._ids[originator_id] += 1
        sequence_id = self._ids[originator_id]
        data = mls.private_message(publishes.GROUP_ID, content_type, epoch=name)
        payer = publishes.paid(publishes.group_message(data, seen={CHAIN: name}), ANN)
        # The chain's envelope has a proof instead of a signature: only the payload is read here.
        signed = OriginatedEnvelope(originator_id or ANN, sequence_id, time_ns, payer, None)
        envelope = sign_originated(unsigned_originated(signed), KEY)
        row = StoredEnvelope(originator_id, sequence_id, time_ns, TOPIC, None, envelope)
        self.names[row] = name

    def behind(self, cursor: Mapping[int, int]) -> list[StoredEnvelope]:
        return [row for row in self.names if row.sequence_id > cursor.get(row.originator_id, 0)]

    def page(self, cursor: Mapping[int, int], limit: int) -> Sequence[StoredEnvelope]:
        """Return the page that a node reads, as ``EnvelopeLog`` does."""
        rows = sorted(self.behind(cursor), key=lambda row: (row.originator_id, row.sequence_id))
        commits = [row for row in rows if row.originator_id == CHAIN]
        others = in_time_order(row for row in rows if row.originator_id != CHAIN)
        page = in_epoch_order(commits[:limit], others[:limit], cursor.get(CHAIN, 0))
        return sorted(page[:limit], key=lambda row: (row.originator_id, row.sequence_id))


def dated_at_random(random: Random) -> Story:
    """Return a story whose commits a reorg has dated anew."""
    story = Story()
    commits = random.randint(1, 4)
    for node_id in (CHAIN, ANN, BEN):
        time_ns = 0
        for _ in range(commits if node_id == CHAIN else random.randint(1, 7)):
            time_ns += random.randint(1, 40 * SECOND)
            if node_id == CHAIN:
                story.commit(time_ns)
            else:
                story.message(node_id, time_ns, random.randint(0, commits))
    return story


def dated_in_seconds(random: Random, most_behind: int = 2) -> Story:
    """Return a story whose messages are some commits behind, as they were sent."""
    story = Story()
    time_ns, commits = 100 * SECOND, 0
    for _ in range(60):
        time_ns += random.choice([10**6, 10**8, SECOND])
        if random.random() < 0.3:
            commits += 1
            story.commit(time_ns // SECOND * SECOND)
        else:
            name = max(0, commits - random.choice([0, *range(most_behind + 1)]))
            story.message(random.choice([ANN, BEN]), time_ns, name)
    return story


class TodaysClient:
    """Reads pages as libxmtp does: by time, then by what is named; and drops what lies below."""

    def __init__(self, names: dict[StoredEnvelope, int]) -> None:
        self._names = names
        self.cursor: dict[int, int] = {}
        self.dropped: list[StoredEnvelope] = []
        self.most_behind = 0
        """How many commits behind the epoch, at most, a message was read."""

    def reads(self, page: Sequence[StoredEnvelope]) -> None:
        seen = self.cursor.get(CHAIN, 0)
        ready: list[StoredEnvelope] = []
        missed: list[StoredEnvelope] = []
        for row in sorted(page, key=lambda each: each.originator_ns):
            if self._names[row] > seen:
                missed.append(row)
                continue
            ready.append(row)
            seen = max(seen, row.sequence_id if row.originator_id == CHAIN else 0)
            ready += [each for each in missed if self._names[each] <= seen]
            missed = [each for each in missed if self._names[each] > seen]
        assert not missed
        for row in ready:
            if row.sequence_id <= self.cursor.get(row.originator_id, 0):
                self.dropped.append(row)
            else:
                self.cursor[row.originator_id] = row.sequence_id
                if row.originator_id != CHAIN:
                    behind = self.cursor.get(CHAIN, 0) - self._names[row]
                    self.most_behind = max(self.most_behind, behind)


def read_to_the_end(story: Story, limit: int) -> TodaysClient:
    client = TodaysClient(story.names)
    while story.behind(client.cursor):
        page = story.page(client.cursor, limit)
        assert page
        client.reads(page)
    return client


@pytest.mark.parametrize("seed", seeds(60, 20, 2_000))
def test_pages__commits_are_dated_at_random__todays_client_drops_nothing(seed: int) -> None:
    random = Random(seed)

    client = read_to_the_end(dated_at_random(random), random.choice([1, 3, 12]))

    assert not client.dropped


@pytest.mark.parametrize("seed", seeds(60, 20, 2_000))
def test_pages__fewer_than_all_and_whole_seconds__todays_client_can_read_each_message(
    seed: int,
) -> None:
    random = Random(seed)

    client = read_to_the_end(dated_in_seconds(random), random.choice([1, 7, 20, 100]))

    assert not client.dropped
    assert client.most_behind <= 2


@pytest.mark.parametrize("seed", seeds(60, 20, 2_000))
def test_stream__asks_for_one_page_at_a_commit__page_has_the_commit(seed: int) -> None:
    told, cursor = Story(), dict.fromkeys((CHAIN, ANN, BEN), 0)
    for row, name in dated_in_seconds(Random(seed), 1).names.items():
        told.names[row] = name
        # A message in a stream does not move the cursor with which today's clients sync.
        if row.originator_id == CHAIN:
            page = told.page(cursor, 100)
            assert row in page
            cursor |= {each.originator_id: each.sequence_id for each in page}


def test_page__no_message_overtakes_another__has_all() -> None:
    story = dated_at_random(Random(1))
    newest = max(row.sequence_id for row in story.names if row.originator_id == CHAIN)

    page = story.page({CHAIN: newest}, 100)

    assert set(page) == set(story.behind({CHAIN: newest}))


def test_page__commit_names_no_one__comes_before_messages_of_a_minute_later() -> None:
    story = Story()
    story.commit(SECOND)
    story.message(ANN, 61 * SECOND, 0)
    story.message(ANN, 61 * SECOND + 1, 0)

    assert [row.originator_id for row in story.page({}, 2)] == [CHAIN, ANN]
    assert [row.sequence_id for row in story.page({}, 1)] == [1]


def test_in_time_order__a_time_falls__keeps_the_ids_of_an_originator_in_order() -> None:
    story = Story()
    for time_ns in (5, 3, 9):
        story.message(ANN, time_ns, 0)
    story.message(BEN, 4, 0)
    story.message(BEN, 6, 0)

    found = [(row.originator_id, row.sequence_id) for row in in_time_order(story.names)]
    assert found == [(BEN, 1), (ANN, 1), (ANN, 2), (BEN, 2), (ANN, 3)]
