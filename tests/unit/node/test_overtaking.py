"""No page lets one of today's clients drop a message, however a reorg has dated the commits."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.storage.held_back import without_overtaking
from support import publishes
from support.indexer.fake_node import KEY
from support.seeds import seeds

CHAIN, ANN, BEN = 0, 200, 300
TOPIC = TopicKind.GROUP_MESSAGE.topic(publishes.GROUP_ID)
LIMIT = 12


class Story:
    """Commits and messages of a group; ``names`` has what each row names of the chain."""

    def __init__(self, random: Random) -> None:
        self.names: dict[StoredEnvelope, int] = {}
        commits = random.randint(1, 4)
        time_ns = 0
        for sequence_id in range(1, commits + 1):
            time_ns += random.randint(1, 40)
            # A commit has no bytes that are read.
            row = StoredEnvelope(CHAIN, sequence_id, time_ns, TOPIC, None, b"")
            self.names[row] = sequence_id - 1
        for node_id in (ANN, BEN):
            time_ns = 0
            for sequence_id in range(1, random.randint(2, 8)):
                time_ns += random.randint(1, 30)
                name = random.randint(0, commits)
                message = publishes.group_message(seen={CHAIN: name})
                payer = publishes.paid(message, node_id)
                unsigned = unsigned_originated(
                    OriginatedEnvelope(node_id, sequence_id, time_ns, payer, None)
                )
                signed = sign_originated(unsigned, KEY)
                self.names[StoredEnvelope(node_id, sequence_id, time_ns, TOPIC, None, signed)] = (
                    name
                )

    def behind(self, cursor: dict[int, int]) -> list[StoredEnvelope]:
        rows = [row for row in self.names if row.sequence_id > cursor.get(row.originator_id, 0)]
        return sorted(rows, key=lambda row: (row.originator_id, row.sequence_id))[:LIMIT]


class TodaysClient:
    """Reads pages as libxmtp does: by time, then by what is named; and drops what lies below."""

    def __init__(self, names: dict[StoredEnvelope, int]) -> None:
        self._names = names
        self.cursor: dict[int, int] = {}
        self.dropped: list[StoredEnvelope] = []

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


@pytest.mark.parametrize("seed", seeds(60, 20, 2_000))
def test_pages__commits_are_dated_at_random__todays_client_drops_nothing(seed: int) -> None:
    story = Story(Random(seed))
    client = TodaysClient(story.names)
    while rows := story.behind(client.cursor):
        page = without_overtaking(rows, client.cursor)
        assert page
        client.reads(page)
    assert not client.dropped


def test_page__no_message_overtakes_another__has_all() -> None:
    story = Story(Random(1))
    rows = sorted(story.names, key=lambda row: (row.originator_id, row.sequence_id))
    newest = max(row.sequence_id for row in rows if row.originator_id == CHAIN)

    assert without_overtaking(rows, {CHAIN: newest}) == rows
