"""When nodes are due: each once a round, and not all at once."""

from __future__ import annotations

import random
from itertools import pairwise

from chainkit_node.watching.rounds import Rounds

NODES = range(100, 2100, 100)


def test_due__an_hour__each_node_is_due_once_a_minute_on_average_and_never_foreseen() -> None:
    rounds = Rounds(random.Random(3), 60.0)

    moments: dict[int, list[int]] = {each: [] for each in NODES}
    for now in range(3600):
        for each in rounds.due(NODES, now):
            moments[each].append(now)

    assert all(50 <= len(found) <= 72 for found in moments.values())
    pauses = {b - a for found in moments.values() for a, b in pairwise(found)}
    assert min(pauses) >= 30
    assert max(pauses) <= 91
    assert len(pauses) > 40
    assert len({found[0] for found in moments.values()}) > 10


def test_due__nodes_that_left_and_came_back__are_due_within_a_round_as_new_ones_are() -> None:
    rounds = Rounds(random.Random(3), 60.0)
    assert rounds.due(NODES, 0.0) == []
    assert rounds.due(NODES, 60.0) == list(NODES)

    assert rounds.due([], 61.0) == []

    assert rounds.due(NODES, 62.0) == []
    assert rounds.due(NODES, 122.0) == list(NODES)
