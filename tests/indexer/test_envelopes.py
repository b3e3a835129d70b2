import random
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, text

from chainkit.errors import StoreError, StoreUnavailable
from chainkit_indexer.storage import envelopes
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import (
    StoredEnvelope,
    in_time_order,
    insert_envelopes,
    read_by_originators,
    read_by_topics,
    read_highest,
    read_last,
    read_last_on_topics,
    read_newest,
    read_topic_log,
)

NOW = 1_000
A, B, C = (bytes([0]) + bytes([number]) * 16 for number in (1, 2, 3))
LARGEST = 2**63 - 1
MEGABYTE = 1 << 20
BEYOND = 2**64 - 1


def row(
    originator_id: int,
    sequence_id: int,
    topic: bytes = A,
    time: int = 0,
    expires: int | None = None,
) -> StoredEnvelope:
    content = f"envelope {sequence_id} of originator {originator_id}".encode()
    return StoredEnvelope(originator_id, sequence_id, time, topic, expires, content)


ROWS = [
    row(0, 1, A, 5),
    row(0, 2, B, 6),
    row(0, 5, A, 9),
    row(100, 1, B, 7),
    row(100, 2, A, 8, expires=NOW),
    row(100, 3, A, 8, expires=NOW + 1),
    row(100, 4, B, 9),
    row(200, LARGEST, A, 7),
]
"""Sequence ids 3 and 4 of originator 0 are in quarantine, and 2 of originator 100 has expired."""


@pytest.fixture
def filled(indexed: Database) -> Database:
    store(indexed, ROWS)
    return indexed


def store(database: Database, rows: list[StoredEnvelope]) -> None:
    with database.writing() as connection:
        insert_envelopes(database, connection, rows)


def keys(rows: list[StoredEnvelope]) -> list[tuple[int, int]]:
    return [each[:2] for each in rows]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How the database finds the rows of each statement that follows."""
    found: list[str] = []
    read = envelopes._rows

    def explain(connection: Connection, statement: str, values: Any = (), *rest: Any) -> Any:
        is_sqlite = connection.dialect.name == "sqlite"
        how = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN (ANALYZE)"
        lines = read(connection, f"{how} {statement}", values)
        found.append("\n".join(str(line[-1]) for line in lines))
        return read(connection, statement, values, *rest)

    monkeypatch.setattr(envelopes, "_rows", explain)
    return found


def test_read_by_topics__cursor__is_exclusive_sparse_and_in_order(filled: Database) -> None:
    with filled.reading() as connection:
        first = read_by_topics(connection, [B, A, A], {}, 100, NOW)
        later = read_by_topics(connection, [A, B], {0: 1, 100: 3, 300: 7}, 100, NOW)
        all_read = read_by_topics(connection, [A], {0: 5, 100: BEYOND, 200: LARGEST}, 100, NOW)
        none = [read_by_topics(connection, topics, {}, 100, NOW) for topics in ([], [C])]

    assert first == [each for each in ROWS if each.expires_at != NOW]
    assert keys(later) == [(0, 2), (0, 5), (100, 4), (200, LARGEST)]
    assert [all_read, *none] == [[], [], []]


def test_read_by_topics__in_time__is_a_beginning_in_time_however_times_fall(
    indexed: Database,
) -> None:
    chance = random.Random(31)
    rows = [
        row(originator_id, number, chance.choice([A, B]), number + chance.randint(0, 9))
        for originator_id in (0, 100, 200)
        for number in range(1, 30)
    ]
    store(indexed, rows)
    ordered = in_time_order(rows)

    with indexed.reading() as connection:
        for limit in (1, 7, 40, 100):
            found = read_by_topics(connection, [A, B], {}, limit, NOW, in_time=True)
            assert found == ordered[:limit]
        cut = read_by_topics(connection, [A, B], {}, 100, NOW, 100, in_time=True)
    assert 1 < len(cut) < 10
    assert cut == ordered[: len(cut)]


def test_read_by_originators__cursor__is_exclusive_sparse_and_in_order(filled: Database) -> None:
    with filled.reading() as connection:
        first = read_by_originators(connection, [200, 100, 100, 7], {}, 100, NOW)
        later = read_by_originators(connection, [0, 100], {100: 3}, 3, NOW)
        all_read = read_by_originators(connection, [0, 100], {0: BEYOND, 100: 4}, 100, NOW)

    assert first == [each for each in ROWS[3:] if each.expires_at != NOW]
    assert keys(later) == [(0, 1), (0, 2), (0, 5)]
    assert all_read == []


def test_read__any_rows_in_pages__gives_each_row_once(indexed: Database) -> None:
    chance = random.Random(27)
    topics = [bytes([0, number]) for number in range(6)]
    rows = [
        row(
            originator_id,
            sequence_id,
            chance.choice(topics),
            0,
            chance.choice([None, NOW, LARGEST]),
        )
        for originator_id in (0, 1, 100, 2**31)
        for sequence_id in range(1, 40)
    ]
    store(indexed, rows)
    for _ in range(20):
        asked = chance.sample(topics, chance.randint(1, 5))
        originators = chance.sample([0, 1, 100, 2**31], chance.randint(1, 4))
        start = {each: chance.randint(0, 45) for each in originators[:2]}
        lives = [each for each in rows if each.expires_at != NOW]
        lives = [each for each in lives if each.sequence_id > start.get(each.originator_id, 0)]
        limit = chance.randint(1, 50)
        with indexed.reading() as connection:
            by_topic = pages(connection, read_by_topics, asked, start, limit)
            by_originator = pages(connection, read_by_originators, originators, start, limit)

        assert by_topic == [each for each in lives if each.topic in asked]
        assert by_originator == [each for each in lives if each.originator_id in originators]


def pages(
    connection: Connection,
    read: Callable[..., list[StoredEnvelope]],
    asked: list[Any],
    start: dict[int, int],
    limit: int,
) -> list[StoredEnvelope]:
    cursor, found = dict(start), list[StoredEnvelope]()
    while page := read(connection, asked, cursor, limit, NOW):
        is_last = not read(connection, asked, cursor | cursor_of(page), limit, NOW)
        assert len(page) == limit or (len(page) < limit and is_last)
        cursor |= cursor_of(page)
        found += page
    return found


def cursor_of(page: list[StoredEnvelope]) -> dict[int, int]:
    return {each.originator_id: each.sequence_id for each in page}


def test_read_newest__some_topics__is_the_last_by_time_that_lives(filled: Database) -> None:
    with filled.reading() as connection:
        newest = read_newest(connection, [B, C, A], NOW)
        later = read_newest(connection, [A], LARGEST)

    assert newest == {A: ROWS[2], B: ROWS[6]}
    assert later == {A: ROWS[2]}


@pytest.mark.parametrize("most_bytes", [0, 9, 10, 11, 29, 30, 31, 10**9])
def test_read__bytes_that_a_reader_takes__ends_with_the_first_row_beyond(
    indexed: Database, most_bytes: int
) -> None:
    rows = [
        StoredEnvelope(node, number, 0, A if number % 3 else B, None, b"e" * 10)
        for node in (100, 200)
        for number in range(1, 4)
    ]
    store(indexed, rows)
    count = most_bytes // 10 + 1

    with indexed.reading() as connection:
        by_originators = read_by_originators(connection, [100, 200], {}, 100, NOW, most_bytes)
        by_topics = read_by_topics(connection, [A, B], {}, 100, NOW, most_bytes)

    assert by_originators == by_topics == rows[:count]


def test_read__key_packages_have_expired__has_the_newest_of_each_installation(
    indexed: Database,
) -> None:
    # An installation's newest may be from another originator than the one before.
    keys_of_one, keys_of_other = bytes([3]) + bytes(32), bytes([3]) + bytes([1]) * 32
    rows = [
        row(100, 1, keys_of_one, 1, expires=NOW),
        row(100, 2, keys_of_one, 3, expires=NOW),
        row(100, 3, keys_of_other, 4, expires=NOW),
        row(200, 1, keys_of_one, 3, expires=NOW - 9),
        row(200, 2, keys_of_other, 3, expires=NOW + 1),
        row(200, 3, bytes([1]) + bytes(32), 5, expires=NOW),
    ]
    store(indexed, rows)
    topics = [keys_of_one, keys_of_other, rows[-1].topic]
    with indexed.reading() as connection:
        newest = read_newest(connection, topics, NOW)
        by_topic = pages(connection, read_by_topics, topics, {}, 1)
        by_originator = pages(connection, read_by_originators, [100, 200], {}, 1)

    assert newest == {keys_of_one: rows[3], keys_of_other: rows[2]}
    assert by_topic == by_originator == [rows[2], rows[3], rows[4]]


def test_read_newest__newest_has_expired__is_the_one_before(indexed: Database) -> None:
    rows = [row(100, 1, A, 1), row(100, 2, A, 2, expires=NOW), row(200, 1, A, 1)]
    store(indexed, rows)

    with indexed.reading() as connection:
        assert read_newest(connection, [A], NOW) == {A: rows[2]}
        assert read_newest(connection, [A], NOW - 1) == {A: rows[1]}


def test_read_last__some_originators__is_the_end_of_each(filled: Database) -> None:
    with filled.reading() as connection:
        assert read_highest(connection) == {0: 5, 100: 4, 200: LARGEST}
        assert read_last(connection, 100) == (4, 9)
        assert read_last(connection, 7) is None
        assert read_last_on_topics(connection, [B, C], [0]) == {B: (2, 6), C: (0, 0)}
        assert read_last_on_topics(connection, [B], [0, 1, 100]) == {B: (4, 9)}
        assert read_last_on_topics(connection, [], [0]) == {}


def test_read_last__newest_has_expired__is_still_the_last(indexed: Database) -> None:
    store(indexed, [row(100, 1), row(100, 2, A, 3, expires=1)])

    with indexed.reading() as connection:
        assert read_last(connection, 100) == (2, 3)
        assert read_last_on_topics(connection, [A], [100]) == {A: (2, 3)}


def test_read_topic_log__of_an_originator__has_expired_ones_too(
    filled: Database,
) -> None:
    with filled.reading() as connection:
        found = read_topic_log(connection, A, 100, 0, 9, MEGABYTE)
        first = read_topic_log(connection, A, 100, 0, 1, MEGABYTE)
        later = read_topic_log(connection, A, 100, 2, 9, MEGABYTE)
        cut = read_topic_log(connection, A, 100, 0, 9, 1)
        none = read_topic_log(connection, C, 100, 0, 9, MEGABYTE)

    assert found == ROWS[4:6]
    assert first == cut == ROWS[4:5]
    assert (later, none) == (ROWS[5:6], [])


def test_read__no_rows__finds_none(indexed: Database) -> None:
    with indexed.reading() as connection:
        assert read_highest(connection) == {}
        assert read_by_topics(connection, [A], {}, 1, NOW) == []
        assert read_by_originators(connection, [0], {}, 1, NOW) == []
        assert read_newest(connection, [A], NOW) == {}


def test_insert_envelopes__sequence_id_is_taken__undoes_all_of_them(filled: Database) -> None:
    rows = [row(100, 5), row(100, 4)]

    expected = pytest.raises(StoreError, match=r"(?i)unique")
    with expected as caught, filled.writing() as connection:
        insert_envelopes(filled, connection, rows)

    assert not isinstance(caught.value, StoreUnavailable)
    with filled.reading() as connection:
        assert read_highest(connection)[100] == 4


def test_read__many_rows__looks_at_no_more_than_it_needs(
    indexed: Database, plans: list[str]
) -> None:
    # One topic has nearly all rows of one originator, and none of the others'.
    hot = [row(100, number, A) for number in range(1, 10_001)]
    others = [bytes([0]) + number.to_bytes(16) for number in range(100)]
    rest = [row(200, number, others[number % 100]) for number in range(1, 10_001)]
    store(indexed, [*hot, *rest])
    with indexed.writing() as connection:
        connection.execute(text("ANALYZE"))

    with indexed.reading() as connection:
        read_by_topics(connection, [A], {}, 10, NOW)
        read_by_topics(connection, others, {200: 9_000}, 10, NOW)
        read_by_topics(connection, others[:20], {}, 100, NOW, 1 << 20)
        read_by_originators(connection, [100, 200], {100: 9_995}, 10, NOW, 1 << 20)
        read_newest(connection, [A, *others], NOW)
        read_last_on_topics(connection, [A, *others], [100, 200])
        read_topic_log(connection, others[0], 200, 9_000, 10, MEGABYTE)
        read_last(connection, 200)
        read_highest(connection)

    assert len(plans) == 15
    for plan in plans:
        assert "SEARCH" in plan or "Index" in plan
        for scan in (
            "Seq Scan on envelopes",
            "Bitmap",
            "SCAN found",
            "SCAN newer",
            "SCAN envelopes",
        ):
            assert scan not in plan
    by_topic = [plan for plan in plans if "asked" in plan or "topic" in plan]
    # Those of the two originators, too: they look for newer key packages of a topic.
    assert len(by_topic) == 8
    for plan in by_topic:
        assert "envelopes_by_topic" in plan
        assert "Rows Removed" not in plan
