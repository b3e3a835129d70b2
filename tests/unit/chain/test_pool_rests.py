from __future__ import annotations

import pytest

from chainkit.chain.member import LAST_RESORT_SECONDS, LONGEST_PAUSE_SECONDS, EndpointState
from chainkit.errors import RangeRefused
from support.endpoints.clocked_pool import ClockedPool, down, limited


def test_fail__endpoint_unavailable__rests_longer_each_time_up_to_the_longest() -> None:
    pool = ClockedPool("a", "b")
    rests = []
    for _ in range(12):
        pool.fail(down())
        rests.append(pool.rest())
        pool.now += pool.rest()

    assert rests == pytest.approx([min(0.2 * 2**number, 60) for number in range(12)])
    assert pool.status().consecutive_failures == 12


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.99])
def test_fail__endpoint_unavailable__rests_by_chance_but_not_never(draw: float) -> None:
    pool = ClockedPool("a", "b", draw=draw)

    pool.fail(down())
    first = pool.rest()
    pool.fail(down(), times=9)

    assert first == pytest.approx(max(0.05, 0.2 * draw))
    assert pool.rest() == pytest.approx(max(0.05, 60 * draw))


def test_succeed__after_failures__starts_anew() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(down(), times=8)

    pool.succeed()
    after_success = pool.status()
    pool.fail(down())

    assert (after_success.state, after_success.consecutive_failures) == (
        EndpointState.AVAILABLE,
        0,
    )
    assert pool.rest() == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("retry_after", "rest"),
    [(0, 0.2), (7, 7), (300, 300), (86_400, 300), (float("inf"), 300), (None, 0.2)],
)
def test_fail__rate_limited__rests_as_long_as_asked_but_not_for_ever(
    retry_after: float | None, rest: float
) -> None:
    pool = ClockedPool("a")

    pool.fail(limited(retry_after))

    assert pool.rest() == pytest.approx(rest)
    assert pool.pool.seconds_until_available() == pytest.approx(rest)


def test_fail__another_error_while_rate_limited__does_not_end_the_rest() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(limited(200))

    pool.fail(down())

    assert pool.rest() == 200


def test_fail__range_refused__is_counted_and_no_fault() -> None:
    pool = ClockedPool("a", "b")

    pool.fail(RangeRefused("logs", "logs", "no"), times=9)

    assert pool.choose() == "a"
    assert pool.status().consecutive_failures == 0
    assert pool.status().errors == {"range_refused": 9}


def test_choose__all_that_may_only_be_slow_rest_long__asks_one_after_some_seconds() -> None:
    pool = ClockedPool("a")
    pool.fail(down(), times=20)
    assert pool.rest() == LONGEST_PAUSE_SECONDS

    assert pool.pool.seconds_until_available() == LAST_RESORT_SECONDS
    pool.now += LAST_RESORT_SECONDS

    assert pool.choose() == "a"
    assert pool.status().state is EndpointState.COOLING
