"""Digests of ranges in a database: the same whether stored or computed, and made in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from chainkit.errors import StoreUnavailable
from chainkit.protocol.log_ranges import (
    ABSENT,
    LogRange,
    RangeContent,
    envelope_digest,
    root_of,
    split,
)
from chainkit_indexer.storage import migrate
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from chainkit_node.storage.range_digests import (
    forget_ranges,
    read_contents,
    read_highest_id,
)
from support.indexer.ranges import NOW, ChangingLog, change_at_random, row
from support.log_sides import ORIGINATOR

OTHER = ORIGINATOR + 100


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ChangingLog]:
    database = Database(f"sqlite:///{tmp_path / 'node.db'}")
    migrate.create(database)
    yield ChangingLog(database)
    database.close()


def stored_rows(log: ChangingLog) -> list[tuple[int, int]]:
    table = schema.range_digests.c
    with log.database.reading() as connection:
        rows = connection.execute(select(table.level, table.number).order_by(*table))
        return [(level, number) for level, number in rows]


@pytest.mark.parametrize("seed", range(3))
def test_read_contents__log_that_changes_in_all_ways__are_those_of_what_it_holds(
    log: ChangingLog, seed: int
) -> None:
    change_at_random(log, seed, steps=15)


def test_store_ranges__two_levels__go_up_with_the_last_of_the_parts(log: ChangingLog) -> None:
    log.append(*map(row, range(1, 64 * 18 + 1)))

    assert [log.store(15), stored_rows(log)] == [15, [(0, number) for number in range(15)]]
    assert [log.store(1), stored_rows(log)[-1]] == [1, (1, 0)]
    assert [log.store(100), log.store(100)] == [2, 0]
    assert len(stored_rows(log)) == 18 + 1

    # It is complete with its last id, and not before.
    log.append(*map(row, range(64 * 18 + 1, 64 * 32)))
    assert log.store(100) == 13
    log.append(row(64 * 32))
    assert log.store(100) == 1
    assert stored_rows(log)[-2:] == [(1, 0), (1, 1)]


def test_forget_ranges__ids__takes_rows_above_the_leaves_and_of_this_originator_alone(
    log: ChangingLog,
) -> None:
    log.append(*map(row, range(1, 1024 * 3 + 1)))
    log.append(*(row(each, originator_id=OTHER) for each in range(1, 65)))
    log.store(100)
    before = stored_rows(log)

    with log.database.writing() as connection:
        forget_ranges(connection, ORIGINATOR, [1, 64, 65, 1025 + 64])
        forget_ranges(connection, OTHER, range(1, 2000))

    assert set(before) - set(stored_rows(log)) == {(1, 0), (1, 1)}
    assert log.store(100) == 2
    assert stored_rows(log) == before


def test_read_contents__nothing_stored_yet__computes_a_few_ranges_and_no_more(
    log: ChangingLog,
) -> None:
    log.append(*map(row, range(1, 64 * 200 + 1)))
    root = LogRange(2, 0)

    with pytest.raises(StoreUnavailable, match="expected stored digests, got too many without"):
        log.content(root, through=log.highest)

    log.store(90)
    assert log.content(root, through=log.highest) == [log.side().content(root, log.highest)]


def test_read_contents__ranges_behind_the_end__are_empty_and_cost_nothing(
    log: ChangingLog,
) -> None:
    log.append(*map(row, range(1, 100)))
    behind = [LogRange(level, 2**50 >> level * 4) for level in range(10) for _ in range(200)]

    assert log.content(*behind, through=99) == [RangeContent(b"")] * 2000


def test_read_contents__other_originators__are_apart(log: ChangingLog) -> None:
    log.append(*map(row, range(1, 300)))
    log.store(100)

    with log.database.reading() as connection:
        found = read_contents(connection, OTHER, 70, [LogRange(0, 0)], NOW)

    assert found == [RangeContent(bytes(64 * 20))]


def test_read_highest_id__last_envelopes_pruned__stays(log: ChangingLog) -> None:
    log.append(*map(row, range(1, 201)))
    log.expire(150, 200)

    with log.database.reading() as connection:
        assert read_highest_id(connection, ORIGINATOR) == 200
        assert read_highest_id(connection, OTHER) == 0
        assert connection.scalar(select(func.max(envelopes.c.sequence_id))) == 149


def test_store_ranges__an_id_far_beyond_the_others__costs_no_row_for_what_is_empty(
    log: ChangingLog,
) -> None:
    far = 10**9
    log.append(*map(row, range(1, 130)), row(far), row(far + 64))

    rounds = 0
    while log.store(64):
        rounds += 1

    # Each level has the ranges of both ends; the last one of a level is not complete.
    assert rounds <= 12
    assert len(stored_rows(log)) < 12
    through = far + 64
    [root] = log.content(root_of(through), through=through)
    parts = split(root.digests)
    assert [parts[0] != ABSENT, set(parts[1:-1]), parts[-1] != ABSENT] == [True, {ABSENT}, True]
    leaf = LogRange(0, (far - 1) // 64)
    expected = envelope_digest(row(far).envelope)
    assert split(log.content(leaf, through=through)[0].digests)[(far - 1) % 64] == expected


def test_store_ranges__range_whose_last_leaf_is_empty__has_a_row_once_it_is_complete(
    log: ChangingLog,
) -> None:
    log.append(*map(row, range(1, 961)))
    assert log.store(100) == 15

    log.append(*map(row, range(1025, 1030)))

    assert [log.store(100), log.store(100)] == [1, 0]
    assert stored_rows(log)[-1] == (1, 0)
    log.check(log.highest)
