"""Pruned ids in a database: what was recorded is read again, in any pattern and in little space."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from chainkit_indexer.storage import migrate
from chainkit_indexer.storage.database import Database
from chainkit_node.storage.gaps import GapRow, GapState, insert_gap, unknown_gaps
from chainkit_node.storage.id_blocks import BLOCK_IDS
from chainkit_node.storage.pruned_ids import PRUNED, read_due, set_due

ORIGINATOR, OTHER = 100, 200


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(str(tmp_path / "node.db"))
    migrate.create(database)
    yield database
    database.close()


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with database.writing() as connection:
        yield connection


@pytest.mark.parametrize("seed", range(2))
def test_read__ids_in_any_pattern__are_those_that_were_added(
    connection: Connection, seed: int
) -> None:
    chance = random.Random(seed)
    added: set[int] = set()
    PRUNED.add(connection, OTHER, range(1, 3 * BLOCK_IDS))
    for _ in range(4):
        first = chance.randint(1, 3 * BLOCK_IDS)
        run = range(first, first + chance.choice((1, 70, BLOCK_IDS + 5)))
        some = [each for each in run if chance.random() < chance.choice((0.5, 1))]
        PRUNED.add(connection, ORIGINATOR, some)
        added.update(some)

    ids = range(chance.randint(1, BLOCK_IDS), 3 * BLOCK_IDS + 9)
    runs = list(PRUNED.runs(connection, ORIGINATOR, ids))
    assert all(runs)
    assert [each for run in runs for each in run] == sorted(added.intersection(ids))
    for start in chance.choices(range(0, 3 * BLOCK_IDS, 64), k=20):
        bits = PRUNED.read(connection, ORIGINATOR, start + 1, start + 50)
        assert bits == sum(1 << n for n in range(50) if start + 1 + n in added)
        behind = min((each for each in added if each > start), default=None)
        assert PRUNED.next_id(connection, ORIGINATOR, start + 1) == behind


def test_next_id__largest_id_of_a_column__is_none(connection: Connection) -> None:
    PRUNED.add(connection, ORIGINATOR, [5])

    assert PRUNED.next_id(connection, ORIGINATOR, 2**63 - 1) is None
    assert list(PRUNED.runs(connection, ORIGINATOR, range(6, 2**62))) == []


def test_add__a_hundred_thousand_holes__cost_less_than_2_megabytes(
    database: Database,
) -> None:
    assert database.file is not None
    with database.writing() as connection:
        PRUNED.add(connection, ORIGINATOR, range(1, 100_000 * 101, 101))
        assert len(list(PRUNED.runs(connection, ORIGINATOR, range(1, 2**62)))) == 100_000
    log = database.file.with_name(f"{database.file.name}-wal")

    assert log.stat().st_size + database.file.stat().st_size < 2_000_000


def test_due__of_a_block__is_kept_beside_its_ids(connection: Connection) -> None:
    assert read_due(connection, ORIGINATOR, 1) == 0
    set_due(connection, ORIGINATOR, 1, 77)
    PRUNED.add(connection, ORIGINATOR, [BLOCK_IDS + 3])
    set_due(connection, ORIGINATOR, 0, 9)

    assert [read_due(connection, ORIGINATOR, each) for each in range(3)] == [9, 77, 0]
    assert PRUNED.next_id(connection, ORIGINATOR, 1) == BLOCK_IDS + 3


def test_unknown_gaps__pruned_ids__are_known(connection: Connection) -> None:
    PRUNED.add(connection, ORIGINATOR, [2, 3, 8])
    insert_gap(connection, GapRow(ORIGINATOR, 9, 9, GapState.EXPIRED, 1))

    assert unknown_gaps(connection, ORIGINATOR, {1, 5}, range(1, 11)) == [
        range(4, 5),
        range(6, 8),
        range(10, 11),
    ]
