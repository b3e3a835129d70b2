from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection

from chainkit_indexer.storage import schema, sqlite
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import (
    StoredEnvelope,
    insert_envelopes,
    read_by_originators,
    read_highest,
    read_last,
)
from chainkit_indexer.storage.store import Store
from support.chains.fake_chain import FakeChain, Post, malformed, update
from support.indexer.fake_node import FakeNode

OWN = 100
TOPIC = b"\x00" + bytes(16)
PATIENCE_SECONDS = 30


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    # Else SQLite itself waits for the other thread, some seconds.
    monkeypatch.setattr(sqlite, "LOCK_SECONDS", 0)
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.fixture
def shared(threads: ThreadPoolExecutor, indexed: Database) -> Database:
    """A database of each kind, whose sessions begin with the setting of ``threads``."""
    return indexed


def next_rows(connection: Connection, count: int) -> list[StoredEnvelope]:
    last, _ = read_last(connection, OWN) or (0, 0)
    numbers = range(last + 1, last + 1 + count)
    return [StoredEnvelope(OWN, number, number, TOPIC, None, bytes(100)) for number in numbers]


def originate(database: Database, batches: int) -> None:
    for _ in range(batches):
        with database.writing() as connection:
            insert_envelopes(database, connection, next_rows(connection, 3))


def hold(database: Database, inside: Event, go_on: Event) -> None:
    with database.writing() as connection:
        insert_envelopes(database, connection, next_rows(connection, 1))
        inside.set()
        assert go_on.wait(PATIENCE_SECONDS)


def own_ids(connection: Connection) -> list[int]:
    return [row.sequence_id for row in read_by_originators(connection, [OWN], {}, 1_000_000, 0)]


def finish(*tasks: Future[Any]) -> None:
    for task in tasks:
        task.result(PATIENCE_SECONDS)


def test_writing__threads_that_count_on_in_one_sequence__leave_no_gap(
    shared: Database, threads: ThreadPoolExecutor
) -> None:
    finish(*[threads.submit(originate, shared, 20) for _ in range(3)])

    with shared.reading() as connection:
        assert own_ids(connection) == list(range(1, 3 * 20 * 3 + 1))


def test_writing__another_thread_writes__waits_and_readers_do_not(
    shared: Database, threads: ThreadPoolExecutor
) -> None:
    inside, go_on = Event(), Event()
    first = threads.submit(hold, shared, inside, go_on)
    assert inside.wait(PATIENCE_SECONDS)
    second = threads.submit(originate, shared, 1)

    with shared.reading() as connection:
        assert own_ids(connection) == []
    with pytest.raises(TimeoutError):
        second.result(0.2)
    go_on.set()

    finish(first, second)
    with shared.reading() as connection:
        assert own_ids(connection) == [1, 2, 3, 4]


def test_close__another_thread_writes__lets_it_commit(
    shared: Database, threads: ThreadPoolExecutor
) -> None:
    inside, go_on = Event(), Event()
    writer = threads.submit(hold, shared, inside, go_on)
    assert inside.wait(PATIENCE_SECONDS)
    closing = threads.submit(shared.close)
    with pytest.raises(TimeoutError):
        closing.result(0.2)
    go_on.set()

    finish(writer, closing)
    with shared.reading() as connection:
        assert own_ids(connection) == [1]


@pytest.mark.parametrize(
    "act", [Database.lock, Database.close, lambda database: originate(database, 1)]
)
def test_writing__within_another__is_an_error_and_the_first_goes_on(
    shared: Database, act: Callable[[Database], None]
) -> None:
    with shared.writing() as connection:
        insert_envelopes(shared, connection, next_rows(connection, 1))
        with pytest.raises(RuntimeError, match="writes already in this thread"):
            act(shared)

    with shared.reading() as connection:
        assert own_ids(connection) == [1]


def test_writing__thread_before_it_failed__has_its_turn(
    shared: Database, threads: ThreadPoolExecutor
) -> None:
    def fail() -> None:
        with shared.writing() as connection:
            insert_envelopes(shared, connection, next_rows(connection, 1))
            raise KeyError

    with pytest.raises(KeyError):
        threads.submit(fail).result(PATIENCE_SECONDS)
    finish(threads.submit(originate, shared, 1))

    with shared.reading() as connection:
        assert own_ids(connection) == [1, 2, 3]


def originate_until(store: Store, is_over: Event) -> int:
    batches = 0
    while not is_over.wait(0.002):
        with store.writing() as connection:
            store.insert_envelopes(connection, next_rows(connection, 5))
        batches += 1
    return batches


def catch_up(*nodes: FakeNode) -> None:
    for node in nodes:
        node.catch_up()


def test_store__one_thread_follows_and_one_originates__both_as_if_alone(
    threads: ThreadPoolExecutor, database_url: str, tmp_path: Path
) -> None:
    chain, is_over = FakeChain(), Event()
    node, twin = (FakeNode(chain, each) for each in (database_url, tmp_path / "twin.db"))
    originating = threads.submit(originate_until, node.store, is_over)
    try:
        for number in range(12):
            chain.mine([Post(f"a{number}")], [update(f"b{number}"), malformed(f"c{number}")])
            catch_up(node, twin)
            chain.fork(1, [update(f"b{number}")], [])
            catch_up(node, twin)
    finally:
        is_over.set()
    batches = originating.result(PATIENCE_SECONDS)

    assert batches > 0
    with node.store.reading() as connection:
        assert own_ids(connection) == list(range(1, 5 * batches + 1))
        assert read_highest(connection)[OWN] == 5 * batches
    for table in schema.metadata.sorted_tables:
        rows = node.rows(table)
        if table is schema.envelopes:
            rows = [row for row in rows if row[0] != OWN]
        assert rows == twin.rows(table), table.name
    node.store.close()
    twin.store.close()
