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
from hypothesis import given
from hypothesis import strategies as st
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
from chainkit_node.originating.sequencer import ClockBehind, Sequencer, _times
from chainkit_node.types import NewEnvelope
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store
from support.indexer.loop_results import Clock as LoopClock

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

    def __init__(self, path: Path, node_id: int = NODE_ID) -> None:
        self.path = path
        self.node_id = node_id
        self.clock = Clock()
        self.published: list[StoredEnvelope] = []
        self.fell_back: list[int] = []
        self.start()

    def start(self) -> None:
        self.store: Store = open_store(self.path, IDENTITY)
        self.sequencer = Sequencer(
            self.store,
            lambda: self.node_id,
            KEY,
            self.clock,
            self.published.extend,
            fell_back=self.fell_back.append,
        )

    def stop(self) -> None:
        self.sequencer.close()
        self.store.close()

    def publish(
        self, *names: str, retention: int | None = None, after_ns: int = 0
    ) -> Sequence[bytes]:
        payloads = new(*names, retention=retention, after_ns=after_ns)
        return self.sequencer.submit(payloads).result(60)

    def rows(self) -> list[StoredEnvelope]:
        with self.store.reading() as connection:
            query = select(schema.envelopes).order_by("sequence_id")
            return [StoredEnvelope._make(row) for row in connection.execute(query)]


def new(*names: str, retention: int | None = None, after_ns: int = 0) -> list[NewEnvelope]:
    return [NewEnvelope(TOPIC, name.encode(), retention, after_ns) for name in names]


def times(node: Node, start_ns: int) -> list[int]:
    return [row.originator_ns - start_ns for row in node.rows()]


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
def test_submit__several_in_one_commit__each_is_later_than_the_one_before(node: Node) -> None:
    start = node.clock.now
    node.publish("a", "b", "c")
    node.clock.now += 1
    node.publish("d", "e")

    assert times(node, start) == [0, 1, 2, 3, 4]


@pytest.mark.conforms("N8")
def test_submit__clock_goes_back_and_on__times_rise_by_a_nanosecond(node: Node) -> None:
    start = node.clock.now
    for change in (0, 5, -1000, 3, 10):
        node.clock.now = start + change
        node.publish("a")
    node.stop()
    node.start()
    node.clock.now = start - 7
    node.publish("b")

    assert times(node, start) == [0, 5, 6, 7, 10, 11]


@pytest.mark.conforms("N8")
def test_submit__clock_more_than_5_minutes_behind__refuses_until_it_has_caught_up(
    node: Node,
) -> None:
    start = node.clock.now
    node.publish("a")
    node.stop()
    node.start()
    node.clock.now = start - 5 * 60 * 10**9
    with pytest.raises(ClockBehind, match="at most 300 s behind the last envelope's time") as error:
        node.publish("too early")
    assert error.value.code is grpc.StatusCode.UNAVAILABLE
    node.clock.now += 1
    node.publish("b")

    assert times(node, start) == [0, 1]
    assert [row.sequence_id for row in node.rows()] == [1, 2]


def test_submit__more_at_once_than_the_clock_allows__refuses_all(node: Node) -> None:
    start = node.clock.now
    node.publish("a")
    node.clock.now = start - 5 * 60 * 10**9 + 2
    with pytest.raises(ClockBehind):
        node.publish("b", "c", "d")
    node.publish("e", "f")

    assert times(node, start) == [0, 1, 2]


def test_submit__names_a_commit_ahead_of_the_clock__is_later_than_the_commit(node: Node) -> None:
    start = node.clock.now
    commit_ns = start + 1_500_000_000
    node.publish("before")
    node.publish("a", "b", after_ns=commit_ns)
    node.publish("of another group")
    node.clock.now = commit_ns
    node.publish("c", after_ns=commit_ns)
    node.clock.now += 10**9
    node.publish("d", after_ns=commit_ns)

    before, a, b, other, c, d = times(node, commit_ns)
    assert before == start - commit_ns
    # Before the next commit of the same second, which comes a microsecond later.
    assert 0 < a < b < other < c < 1_000
    assert d == 10**9


def test_submit__commit_far_ahead_of_the_clock__is_not_followed(node: Node) -> None:
    start = node.clock.now
    node.publish("a", after_ns=start + 60 * 10**9 + 1)
    node.publish("b", after_ns=start + 60 * 10**9)

    not_followed, followed = times(node, start)
    assert not_followed == 0
    assert 60 * 10**9 < followed < 60 * 10**9 + 1_000


def test_submit__nodes_that_follow_one_commit__give_no_time_twice(tmp_path: Path) -> None:
    commit_ns = Clock().now + 10**9
    given: list[int] = []
    for node_id in (100, 200, 300, 1_000, 9_900):
        made = Node(tmp_path / f"{node_id}.db", node_id)
        made.publish(*map(str, range(50)), after_ns=commit_ns)
        own = times(made, commit_ns)
        assert own == sorted(set(own))
        given += own
        made.stop()

    assert len(set(given)) == len(given)
    assert all(each > 0 and each % 1_000 for each in given), "the chain's are whole microseconds"


@given(
    st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(-2_000, 2_000), min_size=6, max_size=6),
    st.integers(1, 10**6),
)
def test_times__any_clock_and_any_commits__rise_and_are_later_than_each_commit(
    commits: list[list[int]], clocks: list[int], node_id: int
) -> None:
    last_ns = 0
    for named, clock in zip(commits, clocks, strict=False):
        now_ns = 10**9 + clock
        payloads = [NewEnvelope(TOPIC, b"", None, 10**9 + each) for each in named]
        for payload, found in zip(
            payloads, _times(payloads, node_id, last_ns, now_ns), strict=True
        ):
            assert found > max(last_ns, payload.after_ns - 1)
            assert found >= now_ns
            last_ns = found


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
        with pytest.raises(NotReady, match="a database that stores it"):
            node.publish("lost")
    node.publish("b")

    assert [row.sequence_id for row in node.rows()] == [1, 2]
    assert [row.envelope for row in node.published] == [row.envelope for row in node.rows()]


@pytest.mark.conforms("N7")
def test_submit__database_goes_back_while_the_process_runs__gives_no_id_again(node: Node) -> None:
    for each in ("a", "b", "c"):
        node.publish(each)
    with node.store.writing() as connection:
        connection.execute(schema.envelopes.delete().where(schema.envelopes.c.sequence_id > 1))

    with pytest.raises(NotReady, match="up to sequence id 3, which it has signed, got up to 1"):
        node.publish("d")

    assert node.fell_back == [3]
    assert [row.sequence_id for row in node.rows()] == [1]


@pytest.mark.conforms("N24")
def test_submit__commit_whose_answer_was_lost__is_published_before_the_next(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Store.writing

    @contextmanager
    def answer_is_lost(self: Store, *, answers: bool) -> Iterator[Any]:
        with writing(self, answers=answers) as connection:
            yield connection
        raise StoreUnavailable("database", "an answer", "a closed connection")

    node.publish("before")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "writing", answer_is_lost)
        with pytest.raises(NotReady, match="a database that stores it"):
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


def test_submit__first_waits_for_too_long__refuses_more_until_it_had_its_turn(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released = Event(), Event()
    insert, seconds = Store.insert_envelopes, LoopClock()

    def waits(self: Store, connection: Any, rows: Any) -> None:
        entered.set()
        assert released.wait(60)
        insert(self, connection, rows)

    monkeypatch.setattr(Store, "insert_envelopes", waits)
    monkeypatch.setattr(node.sequencer._thread, "_clock", seconds)
    answers = [node.sequencer.submit(new("being stored"))]
    assert entered.wait(60)
    answers.append(node.sequencer.submit(new("first")))
    seconds.seconds += 5.5
    with pytest.raises(Overloaded, match="wait at most 5 s to be stored, got one that has"):
        node.sequencer.submit(new("second"))
    released.set()
    wait(answers, 60)
    answers.append(node.sequencer.submit(new("third")))
    wait(answers, 60)

    assert len(node.rows()) == 3
