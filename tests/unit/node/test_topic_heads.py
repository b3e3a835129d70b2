"""Heads of a node's topics: all that it originated there, whatever was asked before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import delete

from chainkit.errors import StoreUnavailable
from chainkit.protocol.topic_heads import MOST_ENTRIES, Chain, Entry, entry_of, read_topic_head
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.originating import topic_heads
from chainkit_node.originating.topic_heads import TopicHeads
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.network.originator import Originator

KEY = SigningKey(b"\3" * 32)
NODE = Originator(100, KEY)
OTHER = Originator(200, KEY)
ONE, TWO, THREE = (b"\1" + bytes([number]) * 32 for number in (1, 2, 3))
IDENTITY = Identity.of(FakeChain().deployment, KEY.public_key)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "node.db", IDENTITY)
    yield opened
    opened.close()


@pytest.fixture
def heads() -> TopicHeads:
    return TopicHeads(lambda: NODE.node_id, KEY)


def put(
    store: Store,
    topic: bytes,
    *numbers: int,
    node: Originator = NODE,
    expires: int | None = None,
) -> list[Entry]:
    """Store envelopes of a node on a topic; return their entries."""
    signed = {each: node.signed(each) for each in numbers}
    rows = [
        StoredEnvelope(node.node_id, each, 0, topic, expires, data) for each, data in signed.items()
    ]
    with store.writing() as connection:
        store.insert_envelopes(connection, rows)
    return [entry_of(each) for each in signed.values()]


def asked(heads: TopicHeads, store: Store, *topics: bytes) -> Sequence[tuple[int, Chain]]:
    """The highest id and the chain of each head."""
    with store.reading() as connection:
        request = heads.begin(connection)
        read = [read_topic_head(request.head(each), KEY.public_key) for each in topics]
    assert [each.topic for each in read] == list(topics)
    assert {each.originator_id for each in read} <= {NODE.node_id}
    return [(each.through_id, each.chain) for each in read]


def test_head__of_some_topics__is_all_that_the_node_originated_there(
    store: Store, heads: TopicHeads
) -> None:
    first, other = put(store, ONE, 1, 4), put(store, TWO, 2, 3, 5)
    put(store, ONE, 3, 9, node=OTHER)

    assert asked(heads, store, TWO, ONE, THREE) == [
        (5, Chain().extended(other)),
        (5, Chain().extended(first)),
        (5, Chain()),
    ]


def test_head__again__takes_what_came_since_and_reads_nothing_twice(
    store: Store, heads: TopicHeads
) -> None:
    first = put(store, ONE, 1, 4)
    asked(heads, store, ONE)
    with store.writing() as connection:
        connection.execute(delete(schema.envelopes))
    later = put(store, ONE, 7)

    assert asked(heads, store, ONE) == [(7, Chain().extended([*first, *later]))]


def test_head__another_request_read_later_envelopes_meanwhile__has_no_id_beyond_its_end(
    store: Store, heads: TopicHeads
) -> None:
    put(store, ONE, 1)
    with store.reading() as connection:
        request = heads.begin(connection)
        put(store, ONE, 2)
        later = asked(heads, store, ONE)

        head = read_topic_head(request.head(ONE), KEY.public_key)

    assert [(head.through_id, head.chain)] == later


def test_head__more_than_is_read_at_once__is_given_when_it_is_asked_for_again(
    store: Store, heads: TopicHeads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_heads, "_PAGE", 2)
    all_of_it = put(store, ONE, *range(1, 10))
    refused = 0

    while True:
        with store.reading() as connection:
            request = heads.begin(connection, most_bytes=1000)
            try:
                head = request.head(ONE)
            except StoreUnavailable:
                refused += 1
            else:
                break

    assert read_topic_head(head, KEY.public_key).chain == Chain().extended(all_of_it)
    assert 0 < refused < 9


def test_head__more_topics_than_are_kept__are_read_again(
    store: Store, heads: TopicHeads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_heads, "_MOST_KEPT", 1)
    first, other = put(store, ONE, 1, 4), put(store, TWO, 2)
    asked(heads, store, ONE, TWO)

    assert asked(heads, store, ONE, TWO) == [
        (4, Chain().extended(first)),
        (4, Chain().extended(other)),
    ]


def test_entries__behind_an_id__are_those_of_the_head_also_expired_ones(
    store: Store, heads: TopicHeads
) -> None:
    all_of_it = [*put(store, ONE, 1, expires=50), *put(store, ONE, 4, 6)]
    put(store, TWO, 3)

    assert asked(heads, store, ONE) == [(6, Chain().extended(all_of_it))]
    with store.reading() as connection:
        request = heads.begin(connection)
        assert request.entries(ONE, 0) == all_of_it
        assert request.entries(ONE, 1) == all_of_it[1:]
        assert request.entries(THREE, 0) == []


def test_entries__many__are_a_bounded_number_for_all_topics(
    store: Store, heads: TopicHeads
) -> None:
    half = MOST_ENTRIES // 2 + 1
    put(store, ONE, *range(1, half))
    put(store, TWO, *range(half, 2 * half))

    with store.reading() as connection:
        request = heads.begin(connection)
        found = [request.entries(each, 0) for each in (ONE, TWO, ONE)]

    assert [len(each) for each in found] == [half - 1, MOST_ENTRIES - half + 1, 0]


def test_begin__while_nothing_may_be_originated__is_refused(store: Store) -> None:
    def lags() -> int:
        raise NotReady("node", "its own log", "a part of it")

    with store.reading() as connection, pytest.raises(NotReady):
        TopicHeads(lags, KEY).begin(connection)
