"""Turns of callers: what one with little to do waits for, whatever the others have put before."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chainkit_node.fair_queue import FairQueue

MOST = 1000
HOSTILE = st.dictionaries(
    st.integers(0, 99).map(lambda number: f"hostile {number}"),
    st.lists(st.integers(1, 1000), min_size=1, max_size=20),
    min_size=1,
    max_size=20,
)
"""The costs of what each hostile caller has put."""


def filled(hostile: dict[str, list[int]], taken: int = 0) -> FairQueue[tuple[str, int]]:
    queue = FairQueue[tuple[str, int]](MOST)
    for name, costs in hostile.items():
        for cost in costs:
            queue.put(name, (name, cost), cost, 0.0)
    for _ in range(min(taken, len(queue))):
        queue.take()
    return queue


@given(HOSTILE, st.integers(0, 100), st.integers(1, 10))
@example({"hostile 0": [1], "hostile 1": [2]}, 1, 1)
def test_take__honest_item_behind_many__waits_for_an_item_and_its_own_cost_of_each_other_at_most(
    hostile: dict[str, list[int]], taken: int, cost: int
) -> None:
    queue = filled(hostile, taken)
    queue.put("honest", ("honest", cost), cost, 0.0)

    before: dict[str, list[int]] = {}
    while (item := queue.take())[0] != "honest":
        before.setdefault(item[0], []).append(item[1])
    assert all(sum(each[1:]) <= cost for each in before.values())


@given(HOSTILE)
def test_take__each_caller__gets_its_items_in_their_order_and_all_of_them(
    hostile: dict[str, list[int]],
) -> None:
    queue = filled(hostile)

    taken: dict[str, list[int]] = {}
    while len(queue):
        name, cost = queue.take()
        taken.setdefault(name, []).append(cost)
    assert taken == hostile
    with pytest.raises(IndexError):
        queue.take()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_has_room__greedy_callers_come_in_any_order__a_freed_place_is_for_who_has_none(
    order: list[int],
) -> None:
    queue = FairQueue[int](MOST)
    for each in order:
        while queue.has_room(f"greedy {each}"):
            queue.put(f"greedy {each}", each, 1, 0.0)
    assert MOST // 2 <= len(queue) <= MOST

    queue.take()
    assert queue.has_room("honest")
    if len(queue) == MOST - 1:
        waiting = {f"greedy {each}" for each in order}
        assert not [
            each for each in waiting if queue.waits_since(each) is not None and queue.has_room(each)
        ]


def test_waits_since__items_of_two_callers__is_the_first_one_that_still_waits() -> None:
    queue, moments = FairQueue[str](MOST), count(1.0)
    for name in ("ann", "ann", "ben"):
        queue.put(name, name, 1, next(moments))

    assert [queue.waits_since(each) for each in ("ann", "ben", "eve")] == [1.0, 3.0, None]
    assert queue.take() == "ann"
    assert queue.waits_since("ann") == 2.0
    assert [queue.take(), queue.take()] == ["ben", "ann"]
    assert queue.waits_since("ann") is None
