"""A transaction of the pruner grows and shrinks by how long other writers had to wait."""

from __future__ import annotations

import pytest

from chainkit_node.pruning.pace import HELD_SECONDS, LEAST, Pace


def deleted(pace: Pace, seconds_each: float, seconds_commit: float, batches: int) -> float:
    """Let batches take their time; return how long the last one took."""
    taken = 0.0
    for _ in range(batches):
        taken = seconds_commit + pace.envelopes * seconds_each
        pace.took(pace.envelopes, taken)
    return taken


def test_took__steady_database__fills_the_time_and_no_more() -> None:
    pace = Pace(500)

    assert pace.envelopes == LEAST
    assert deleted(pace, HELD_SECONDS / 200, 0.0, 20) <= HELD_SECONDS
    assert pace.envelopes == pytest.approx(200, abs=1)


def test_took__slow_or_fast__stays_between_the_least_and_the_most() -> None:
    slow, fast, tiny = Pace(500), Pace(500), Pace(7)

    deleted(slow, 1.0, 1.0, 3)
    deleted(fast, 0.0, 0.0, 20)
    deleted(tiny, 1.0, 1.0, 3)

    assert (slow.envelopes, fast.envelopes, tiny.envelopes) == (LEAST, 500, 7)


def test_took__database_becomes_slow__shrinks_at_once() -> None:
    pace = Pace(500)
    deleted(pace, HELD_SECONDS / 400, 0.0, 20)
    before = pace.envelopes

    deleted(pace, HELD_SECONDS / 100, 0.0, 1)

    assert before > 390
    assert pace.envelopes == pytest.approx(100, abs=1)
