"""The ranges that are asked for where envelopes are missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chainkit.types import Cursor
from chainkit_client.ordering.causal import causally_ordered
from chainkit_client.ordering.ranges import RangeRequest, range_requests
from support.client.topics import Sent

MISSING = st.lists(st.tuples(st.sampled_from([0, 100, 200]), st.integers(1, 15)))


def test_requests__nothing_is_missing__are_none() -> None:
    assert range_requests([], Cursor({100: 5})) == []


def test_requests__places_behind_the_cursor__are_one_range_from_it_for_each_originator() -> None:
    missing = [(200, 3), (100, 12), (100, 9)]

    assert range_requests(missing, Cursor({100: 7})) == [
        RangeRequest(100, 7, 12),
        RangeRequest(200, 0, 3),
    ]


def test_requests__places_that_were_left_out__are_asked_for_exactly() -> None:
    missing = [(100, 2), (100, 3), (100, 5), (100, 8), (100, 20)]

    assert range_requests(missing, Cursor({100: 8})) == [
        RangeRequest(100, 1, 3),
        RangeRequest(100, 4, 5),
        RangeRequest(100, 7, 20),
    ]


def test_requests__place_just_behind_the_cursor__is_a_range_of_one() -> None:
    assert range_requests([(100, 8)], Cursor({100: 7})) == [RangeRequest(100, 7, 8)]
    assert range_requests([(100, 7)], Cursor({100: 7})) == [RangeRequest(100, 6, 7)]


def test_requests__claimed_ids_without_end__are_a_range_all_the_same() -> None:
    missing = [(100, 2**63 - 1), (100, 2**80), (2**32, 1)]

    assert range_requests(missing, Cursor()) == [
        RangeRequest(100, 0, 2**80),
        RangeRequest(2**32, 0, 1),
    ]


def test_requests__order_with_an_omission__asks_for_it_alone() -> None:
    envelope = Sent(200, 1, 1, {100: 7, 300: 4})
    known = {(100, 6), (100, 8), (300, 1)}
    order = causally_ordered([envelope], lambda *place: place in known)

    requests = range_requests(order.missing, Cursor({100: 8, 300: 1}))

    assert requests == [RangeRequest(100, 6, 7), RangeRequest(300, 1, 4)]


@given(MISSING, st.dictionaries(st.sampled_from([0, 100, 200]), st.integers(0, 15)))
def test_requests__any_places__cover_them_and_what_is_behind_the_cursor_before_them(
    missing: list[tuple[int, int]], cursor: dict[int, int]
) -> None:
    requests = range_requests(missing, Cursor(cursor))

    asked = [
        (each.originator_id, sequence_id)
        for each in requests
        for sequence_id in range(each.after + 1, each.through + 1)
    ]
    expected = set(missing)
    for originator_id, sequence_id in missing:
        first = cursor.get(originator_id, 0) + 1
        expected |= {(originator_id, each) for each in range(first, sequence_id)}
    assert asked == sorted(expected)
    # No two of them could be one.
    ends = {(each.originator_id, each.through) for each in requests}
    assert ends.isdisjoint({(each.originator_id, each.after) for each in requests})
