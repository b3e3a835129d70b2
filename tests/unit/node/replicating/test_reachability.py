"""Which outcome of a request is reported as what, and how long the next answer is waited for."""

from __future__ import annotations

import pytest

from chainkit.misbehavior.types import SLOW_SECONDS, UNRESPONSIVE_SECONDS, Misbehavior
from chainkit_node.replicating.reachability import (
    LONGEST_SECONDS,
    Reachability,
)

PEER, OTHER = 200, 300


@pytest.mark.conforms("N30", "N43")
def test_silent__for_the_threshold__is_reported_and_again_after_each_longer_wait() -> None:
    reach = Reachability()
    now, waits, found = 0.0, [], []

    for _ in range(6):
        waits.append(reach.patience(PEER))
        found.append(reach.silent(PEER, now, now + waits[-1]))
        now += waits[-1]

    assert waits == [UNRESPONSIVE_SECONDS * 2**each for each in range(4)] + [LONGEST_SECONDS] * 2
    assert found == [Misbehavior.UNRESPONSIVE_NODE] * 6
    assert reach.is_unreachable(PEER, now)
    assert not reach.is_unreachable(OTHER, now)


def test_silent__refused_connections__are_reported_once_the_threshold_has_passed() -> None:
    reach = Reachability()

    assert reach.silent(PEER, 0.0, 0.1) is None
    assert reach.silent(PEER, 3.0, 3.1) is None
    assert reach.silent(PEER, 4.0, 4.1) is Misbehavior.UNRESPONSIVE_NODE


@pytest.mark.conforms("N30")
def test_answered__after_silence__is_reachable_and_waited_for_as_at_first() -> None:
    reach = Reachability()
    reach.silent(PEER, 0.0, UNRESPONSIVE_SECONDS)

    assert reach.answered(PEER, 0.5) is None

    assert not reach.is_unreachable(PEER, 100.0)
    assert reach.patience(PEER) == UNRESPONSIVE_SECONDS


def test_answered__later_than_the_threshold__is_reported_as_slow() -> None:
    reach = Reachability()

    assert reach.answered(PEER, SLOW_SECONDS) is None
    assert reach.answered(PEER, SLOW_SECONDS + 0.01) is Misbehavior.SLOW_NODE


def test_refused__each_time__is_reported_and_is_an_answer() -> None:
    reach = Reachability()
    reach.silent(PEER, 0.0, UNRESPONSIVE_SECONDS)

    assert [reach.refused(PEER) for _ in range(2)] == [Misbehavior.FAILED_REQUEST] * 2

    assert not reach.is_unreachable(PEER, 100.0)
