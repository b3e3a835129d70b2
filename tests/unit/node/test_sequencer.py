"""Sequence ids and times of a sequencer, on a database that fails, starts again, and is shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chainkit.errors import StoreUnavailable
from chainkit.protocol.originated_envelope import parse_originated, recover_originator
from chainkit.service.refusals import NotReady, Overloaded
from chainkit.signatures import SigningKey
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.group_thread import MOST_WAITING
from chainkit_node.originating.sequencer import ClockBehind, Sequencer
from chainkit_node.types import NewEnvelope
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store

KEY = SigningKey(b"\3" * 32)
NODE_ID = 100
TOPIC = b"\1" + bytes(32)
IDENTITY = Identity.of(FakeChain().deployment, KEY.public_key)


class Clock:
    """Nanoseconds since 1970, as a test sets them."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000_000

    def __call__(self) -> int:
        return self.now


class Node:
    """A sequencer on a database, and what it published."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.published: list[StoredEnvelope] = []
        self.start()

    def start(self) -> None:
        self.store: Store = open_store(self.path, IDENTITY)
        self.sequencer = Sequencer(
            self.store, lambda: NODE_ID, KEY, self.clock, self.published.extend
        )

    def stop(self) -> None:
        self.sequencer.close()
        self.store.close()

    def publish(self, *names: str, retention: int | None = None) -> Sequence[bytes]:
        return self.sequencer.submit(new(*names, retention=retention)).result(60)

    def rows(self) -> list[StoredEnvelope]:
        with self.store.reading() as connection:
            query = select(schema.envelopes).order_by("sequence_id")
            return [StoredEnvelope._make(row) for row in connection.execute(query)]


def new(*names: str, retention: int | None = None) -> list[NewEnvelope]:
    return [NewEnvelope(TOPIC, name.encode(), retention) for name in names]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node.db")
    yield made
    made.stop()


@pytest.mark.conforms("N6")
def test_submit__payloads__are_answered_published_and_stored_as_the_same_signed_bytes(
    node: Node,
) -> None:
    answered = node.publish("a", "b")

    stored = [row.envelope for row in node.rows()]
    assert list(answered) == stored == [row.envelope for row in node.published]
    for number, envelope in enumerate(answered, 1):
        parsed = parse_originated(envelope)
        assert recover_originator(parsed) == KEY.public_key
        assert parsed.envelope.originator_id == NODE_ID
        assert parsed.envelope.sequence_id == number
        assert parsed.envelope.payer_envelope == b"ab"[number - 1 : number]


@pytest.mark.conforms("N7", "N19")
def test_submit__many_at_once_and_restarts__gives_every_id_once_and_keeps_the_order(
    node: Node,
) -> None:
    for _ in range(3):
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda n: node.publish(f"{n}a", f"{n}b"), range(40)))
        for first, second in answers:
            ids = [parse_originated(each).envelope.sequence_id for each in (first, second)]
            assert ids[1] == ids[0] + 1
        node.stop()
        node.start()

    assert [row.sequence_id for row in node.rows()] == list(range(1, 241))


@pytest.mark.conforms("N8")
def test_submit__clock_goes_back_and_on__times_never_fall(node: Node) -> None:
    start = node.clock.now
    for change in (0, 5, -1000, 3, 10):
        node.clock.now = start + change
        node.publish("a")
    node.stop()
    node.start()
    node.clock.now = start - 7
    node.publish("b")

    times = [row.originator_ns - start for row in node.rows()]
    assert times == [0, 5, 5, 5, 10, 10]


@pytest.mark.conforms("N8")
def test_submit__clock_more_than_5_minutes_behind__refuses_until_it_has_caught_up(
    node: Node,
) -> None:
    start = node.clock.now
    node.publish("a")
    node.stop()
    node.start()
    node.clock.now = start - 5 * 60 * 10**9 - 1
    with pytest.raises(ClockBehind, match="at most 300 s behind the last envelope's time") as error:
        node.publish("too early")
    assert error.value.code is grpc.StatusCode.UNAVAILABLE
    node.clock.now += 1
    node.publish("b")

    assert [row.originator_ns - start for row in node.rows()] == [0, 0]
    assert [row.sequence_id for row in node.rows()] == [1, 2]


def test_submit__retention__expires_counted_from_the_envelope_s_own_time(node: Node) -> None:
    node.publish("kept")
    node.publish("expires", retention=3600)

    kept, expires = node.rows()
    assert kept.expires_at is None
    assert expires.expires_at == node.clock.now // 10**9 + 3600
    assert parse_originated(expires.envelope).envelope.expiry_unixtime == expires.expires_at


@pytest.mark.conforms("N7")
def test_submit__database_fails__gives_no_id_and_the_next_takes_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.publish("a")
    insert = Store.insert_envelopes

    def fails(self: Store, connection: Any, rows: Any) -> None:
        insert(self, connection, rows)
        raise StoreUnavailable("database", "space on the disk", "none")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "insert_envelopes", fails)
        with pytest.raises(NotReady, match="space on the disk"):
            node.publish("lost")
    node.publish("b")

    assert [row.sequence_id for row in node.rows()] == [1, 2]
    assert [row.envelope for row in node.published] == [row.envelope for row in node.rows()]


@pytest.mark.conforms("N24")
def test_submit__commit_whose_answer_was_lost__is_published_before_the_next(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Store.writing

    @contextmanager
    def answer_is_lost(self: Store) -> Iterator[Any]:
        with writing(self) as connection:
            yield connection
        raise StoreUnavailable("database", "an answer", "a closed connection")

    node.publish("before")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "writing", answer_is_lost)
        with pytest.raises(NotReady, match="a closed connection"):
            node.publish("stored", "too")
    node.publish("after")

    assert [row.sequence_id for row in node.rows()] == [1, 2, 3, 4]
    assert node.published == node.rows()


def test_submit__node_that_is_not_listed__refuses_with_the_reason(tmp_path: Path) -> None:
    def refuses() -> int:
        raise NotReady("registry", "a node with this node's key", "none")

    store = open_store(tmp_path / "node.db", IDENTITY)
    sequencer = Sequencer(store, refuses, KEY, Clock(), lambda rows: None)
    with pytest.raises(NotReady, match="registry: expected a node with this node's key"):
        sequencer.submit(new("a")).result(60)
    sequencer.close()
    store.close()


def test_submit__too_many_wait__refuses_the_rest_and_stores_what_waited(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released = Event(), Event()
    insert = Store.insert_envelopes

    def waits(self: Store, connection: Any, rows: Any) -> None:
        entered.set()
        assert released.wait(60)
        insert(self, connection, rows)

    monkeypatch.setattr(Store, "insert_envelopes", waits)
    answers = [node.sequencer.submit(new("first"))]
    assert entered.wait(60)
    answers += [node.sequencer.submit(new("a")) for _ in range(MOST_WAITING)]
    with pytest.raises(Overloaded, match="fewer than 1000 requests"):
        node.sequencer.submit(new("one more"))
    released.set()
    wait(answers, 60)

    assert len(node.rows()) == MOST_WAITING + 1
