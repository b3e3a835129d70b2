"""The rows of the node's own database that the watchdog reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.watching.comparing import PAGE, Question
from chainkit_node.watching.own_rows import WatchedRows
from support.chains.fake_chain import Post
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.reporting import Host

NOW = BEGIN_NS // SECOND_NS
FINAL = 70


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "node.db")
    made.chain.mine([Post(f"final {number}") for number in range(FINAL)])
    made.chain.mine([])
    for name in ("soft", "newest"):
        made.chain.mine([Post(name)])
    made.indexer.catch_up()
    yield made
    made.close()


@pytest.fixture
def rows(host: Host) -> WatchedRows:
    return WatchedRows(host.store, lambda: NOW)


def store(host: Host, node: Originator, ids: range, expires_at: int | None = None) -> None:
    found = [
        StoredEnvelope(
            *(each.originator_id, each.sequence_id, each.originator_ns, each.topic),
            *(expires_at, each.envelope),
        )
        for each in (node.received(node.signed(number)) for number in ids)
    ]
    with host.store.writing() as connection:
        host.store.insert_envelopes(connection, found)


@pytest.mark.conforms("N50")
def test_final__the_chain__only_final_payloads_are_compared(host: Host, rows: WatchedRows) -> None:
    stored = {row[:2]: row[-1] for row in host.indexer.rows(schema.envelopes)}
    assert len(stored) == FINAL + 2

    assert rows.final_ids()[0] == FINAL
    assert rows.final_after(0, FINAL - 3) == {
        (0, each): stored[0, each] for each in range(FINAL - 2, FINAL + 1)
    }
    assert list(rows.final_after(0, 4)) == [(0, each) for each in range(5, 5 + PAGE)]
    places = [(0, FINAL), (0, FINAL + 1), (0, 2**64 - 1), (7, 1)]
    assert rows.held(places) == {(0, FINAL): stored[0, FINAL]}


def test_final__a_chain_that_was_not_followed__is_at_zero(tmp_path: Path) -> None:
    host = Host(tmp_path / "empty.db")
    rows = WatchedRows(host.store, lambda: NOW)

    assert set(rows.final_ids().values()) == {0}
    assert rows.topic_question(random.Random(1)) is None
    host.close()


def test_held__another_nodes_envelopes__are_held_as_they_are(host: Host, rows: WatchedRows) -> None:
    node = Originator(200)
    store(host, node, range(1, 4))

    assert rows.held([(200, 2), (200, 9)]) == {(200, 2): node.signed(2)}


def test_topic_question__recent_ones_of_several_originators__are_picked(
    host: Host, rows: WatchedRows
) -> None:
    first, second = Originator(200), Originator(300)
    store(host, first, range(1, 21))
    store(host, second, range(5, 8))
    seen: set[int] = set()
    for seed in range(60):
        question = rows.topic_question(random.Random(seed))
        assert question is not None
        picked = dict(question.picked)
        assert set(picked) == {200, 300}
        assert question.cursor[200] == picked[200] - 1
        assert question.cursor[300] == picked[300] - 1
        assert 0 <= question.cursor[0] < FINAL + 2
        assert first.received(first.signed(1)).topic in question.topics
        assert question.originator_id is None
        seen.add(picked[200])
    assert len(seen) > 10


def test_topic_question__envelopes_that_expire_within_an_hour__are_not_picked(
    host: Host, rows: WatchedRows
) -> None:
    store(host, Originator(200), range(1, 4), NOW + 3600)
    store(host, Originator(300), range(1, 4), NOW + 3601)

    question = rows.topic_question(random.Random(1))

    assert isinstance(question, Question)
    assert {place[0] for place in question.picked} == {300}
    assert question.cursor[200] == 3
