"""Missing sequence ids as ranges: cut where they are filled, and told in the order of changes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete

from chainkit_indexer.storage.store import Store
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import (
    GapRow,
    GapState,
    change_gaps,
    fill_gaps,
    forget_filled,
    insert_gap,
    read_asked_gaps,
    read_filled_after,
    read_last_change,
)


def clear(connection: Connection) -> None:
    for table in (schema.gaps, schema.expired_blocks):
        connection.execute(delete(table))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(st.integers(1, 60)),
    st.lists(st.sets(st.integers(1, 60), min_size=1, max_size=20), max_size=5),
)
def test_fill__any_ids__what_is_open_and_filled_is_what_was_missing(
    store: Store, missing: set[int], fills: list[set[int]]
) -> None:
    with store.writing() as connection:
        clear(connection)
        for first, last in ranges(missing):
            insert_gap(connection, GapRow(100, first, last, GapState.ASKED, 1))
        for moment, ids in enumerate(fills, 2):
            fill_gaps(connection, 100, ids, moment)
        still = missing.difference(*fills)

        assert [
            (each.first_id, each.last_id) for each in read_asked_gaps(connection, 100)
        ] == ranges(still)
        filled = read_filled_after(connection, 0)
        assert ids_of(filled) == sorted(missing - still)
        moments = [each.changed_ns for each in filled]
        assert moments == sorted(set(moments))


def test_change__a_part_of_a_gap__only_from_the_states_that_are_named(store: Store) -> None:
    with store.writing() as connection:
        clear(connection)
        insert_gap(connection, GapRow(100, 3, 5, GapState.ASKED, 7))
        insert_gap(connection, GapRow(100, 8, 9, GapState.OMITTED, 8))

        change_gaps(connection, 100, range(4, 10), GapState.EXPIRED, [GapState.ASKED], now_ns=2)

        still = [(each.first_id, each.last_id) for each in read_asked_gaps(connection, 100)]
        assert still == [(3, 3)]
        # A clock that goes back does not hide the change.
        assert read_last_change(connection) == 9


def test_forget__filled_long_ago__goes_but_for_the_last_change(store: Store) -> None:
    with store.writing() as connection:
        clear(connection)
        insert_gap(connection, GapRow(100, 3, 5, GapState.ASKED, 1))
        for moment, sequence_id in enumerate((3, 4, 5), 10):
            fill_gaps(connection, 100, [sequence_id], moment)

        forget_filled(connection, 100, most=100)

        assert ids_of(read_filled_after(connection, 0)) == [5]


def ranges(ids: set[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for each in sorted(ids):
        if found and each == found[-1][1] + 1:
            found[-1] = (found[-1][0], each)
        else:
            found.append((each, each))
    return found


def ids_of(rows: list[GapRow]) -> list[int]:
    return sorted(each for row in rows for each in range(row.first_id, row.last_id + 1))
