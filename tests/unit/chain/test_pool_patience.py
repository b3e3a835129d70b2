from __future__ import annotations

import pytest

from chainkit.chain import Endpoint, NoEndpointAvailable
from chainkit.chain.member import REFUSAL_SECONDS, EndpointState
from chainkit.errors import ChainError, EndpointUnavailable, RangeRefused, RefusedRequest
from support.endpoints.clocked_pool import NO_ACCESS, ClockedPool, contradiction, down

PATIENCE = 30.0


class SlowRefusals:
    """Each endpoint takes its time to fail, as with time-outs."""

    def __init__(self, pool: ClockedPool, error: ChainError, seconds: float) -> None:
        self.pool, self.error, self.seconds = pool, error, seconds
        self.asked: list[str] = []

    def __call__(self, endpoint: Endpoint) -> None:
        assert len(self.asked) < 20, "asks without end"
        self.asked.append(endpoint.name)
        self.pool.now += self.seconds
        raise self.error


@pytest.mark.parametrize(
    "error",
    [down(), contradiction(), RefusedRequest("a", "a result", "no"), RangeRefused("a", "b", "c")],
    ids=repr,
)
def test_first_answer__endpoints_that_fail_slowly_in_turn__ends_with_patience(
    error: ChainError,
) -> None:
    pool = ClockedPool("a", "b")
    ask = SlowRefusals(pool, error, 20.0)

    with pytest.raises(type(error)) as caught:
        pool.pool.first_answer(ask, PATIENCE)

    assert caught.value is error
    assert len(ask.asked) == 2


def test_first_answer__no_patience__asks_each_once() -> None:
    pool = ClockedPool("a", "b")
    ask = SlowRefusals(pool, down(), 0.5)

    with pytest.raises(EndpointUnavailable):
        pool.pool.first_answer(ask, 0.0)

    assert ask.asked == ["a", "b"]


def test_first_answer__first_time_out_outlasts_patience__is_answered_by_the_next() -> None:
    pool = ClockedPool("a", "b", "c")
    ask = SlowRefusals(pool, down(), 2 * PATIENCE)

    def last_one_answers(endpoint: Endpoint) -> str:
        if endpoint.name != "c":
            ask(endpoint)
        return endpoint.name

    assert pool.pool.first_answer(last_one_answers, PATIENCE) == "c"
    assert ask.asked == ["a", "b"]


def test_choose__two_fail_slowly_in_turn__comes_to_the_third() -> None:
    pool = ClockedPool("a", "b", "c")
    chosen = []
    for _ in range(5):
        chosen.append(pool.choose())
        pool.now += 20
        pool.fail(down(), chosen[-1])

    assert chosen == ["a", "b", "a", "b", "c"]


def test_fail__passing_error_of_one_in_quarantine__is_still_a_quarantine() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(contradiction(), times=3)

    pool.fail(down())

    assert (pool.status().state, pool.rest()) == (EndpointState.QUARANTINED, 30)


class SlowChecks(ClockedPool):
    """Its checks take as long as a time-out."""

    def _check(self, endpoint: Endpoint) -> None:
        assert len(self.checked) < 20, "checks without end"
        self.now += 20
        super()._check(endpoint)


def test_choose__all_in_doubt_and_checks_time_out__says_so_after_each_was_checked() -> None:
    pool = SlowChecks("a", "b", "c")
    for name in "abc":
        pool.fail(NO_ACCESS, name)
        pool.faults[name] = down()
    pool.now += REFUSAL_SECONDS

    with pytest.raises(NoEndpointAvailable):
        pool.choose()
    assert pool.checked == ["a", "b", "c"]

    del pool.faults["b"]
    assert pool.choose() == "b"
