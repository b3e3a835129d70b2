"""Ids that had expired where this node asked: known as such, in little space, and filled again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, func, select

from chainkit.protocol.log_ranges import ABSENT, LogRange
from chainkit.signatures import SigningKey
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store
from chainkit_node.storage import schema
from chainkit_node.storage.expired_ids import read_expired, read_last_expired
from chainkit_node.storage.gaps import (
    GapRow,
    GapState,
    change_gaps,
    fill_gaps,
    insert_gap,
    read_filled_after,
    read_last_change,
    unknown_gaps,
)
from chainkit_node.storage.learned_ids import LEARNED
from support.chains.fake_chain import FakeChain
from support.indexer.fake_node import open_store

IDENTITY = Identity.of(FakeChain().deployment, SigningKey(b"\5" * 32).public_key)
ORIGINATOR = 100
RUNS = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 90)), max_size=8)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "node.db", IDENTITY)) as store:
        yield store


def learn(connection: Connection, run: range, now_ns: int = 5) -> None:
    asked = [GapState.ASKED]
    change_gaps(connection, ORIGINATOR, run, GapState.EXPIRED, asked, now_ns)


def ask(connection: Connection, first: int, last: int) -> None:
    insert_gap(connection, GapRow(ORIGINATOR, first, last, GapState.ASKED, 1))


def expired(connection: Connection, level: int, through: int) -> int:
    asked = LogRange(level, 0)
    digests = ABSENT * asked.part_count(through)
    return read_expired(connection, ORIGINATOR, asked, digests, through, 0)


@settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(RUNS, st.sets(st.integers(1, 390), max_size=40))
def test_change__any_runs_and_late_envelopes__are_answered_like_the_set_of_ids(
    store: Store, learned: list[tuple[int, int]], late: set[int]
) -> None:
    with store.writing() as connection:
        for table in (schema.gaps, schema.expired_blocks):
            connection.execute(delete(table))
        ask(connection, 1, 400)
        known: set[int] = set()
        for first, count in learned:
            learn(connection, range(first, first + count))
            known.update(range(first, first + count))
        before = read_last_change(connection)
        fill_gaps(connection, ORIGINATOR, late, 2)

        filled = {
            each
            for row in read_filled_after(connection, before)
            for each in range(row.first_id, row.last_id + 1)
        }
        assert filled == late, "a reader that has looked already learns of each"
        known -= late
        assert read_last_expired(connection, ORIGINATOR) == max(known, default=0)
        leaf = expired(connection, 0, 400)
        assert leaf == sum(1 << each - 1 for each in known if each <= 64)
        parts = [known.issuperset(range(n + 1, min(n + 64, 400) + 1)) for n in range(0, 400, 64)]
        assert expired(connection, 1, 400) == sum(is_gone << n for n, is_gone in enumerate(parts))
        assert unknown_gaps(connection, ORIGINATOR, late, range(1, 401)) == []


def test_change__long_run__stays_one_row(store: Store) -> None:
    with store.writing() as connection:
        ask(connection, 1, 2**62)
        learn(connection, range(1, 2**62 + 1))

        assert connection.scalar(select(func.count()).select_from(schema.expired_blocks)) == 0
        assert read_last_expired(connection, ORIGINATOR) == 2**62
        parts = LogRange(2, 0).part_count(2**62)
        assert expired(connection, 2, 2**62) == (1 << parts) - 1


def test_add__a_million_holes__cost_less_than_20_megabytes(store: Store) -> None:
    assert store.file is not None
    with store.writing() as connection:
        ask(connection, 1, 100)
        for each in range(1, 100, 2):
            learn(connection, range(each, each + 1))
        rows = connection.scalars(select(schema.expired_blocks.c.count)).all()
        left = connection.scalar(select(func.count()).select_from(schema.gaps))
        # Each is a hole of its own, as the fifty above were asked for and learned.
        LEARNED.add(connection, ORIGINATOR, range(101, 66_000_000, 66), changed_ns=9)
        count = connection.scalar(select(func.sum(schema.expired_blocks.c.count)))
    log = store.file.with_name(f"{store.file.name}-wal")

    assert (rows, left) == ([50], 50), "what is asked still lies between them"
    assert count is not None and count >= 1_000_000
    assert store.file.stat().st_size + log.stat().st_size < 20_000_000
