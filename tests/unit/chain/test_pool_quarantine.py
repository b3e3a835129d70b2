from __future__ import annotations

import pytest

from chainkit.chain import EndpointPool, NoEndpointAvailable
from chainkit.chain.member import (
    FAILURES_UNTIL_HOPELESS,
    LAST_RESORT_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_QUARANTINE_SECONDS,
    REFUSAL_SECONDS,
    EndpointState,
)
from chainkit.errors import AccessRefused, ChainError, Disproved, RefusedRequest, WrongChain
from support.endpoints.clocked_pool import NO_ACCESS, WRONG_CHAIN, ClockedPool, contradiction, down

# ------------------------------------------------------------------ contradictions


def test_fail__contradictions_now_and_then__are_a_short_pause() -> None:
    pool = ClockedPool("a", "b")

    for _ in range(9):
        pool.fail(contradiction())
        assert pool.status().state is EndpointState.COOLING
        assert pool.rest() < 1
        pool.now += 31

    assert pool.checked == []


def test_fail__contradictions_between_successes__are_a_short_pause() -> None:
    pool = ClockedPool("a", "b")

    for _ in range(9):
        pool.fail(contradiction())
        pool.now += 1
        pool.succeed()

    assert pool.status().state is EndpointState.AVAILABLE
    assert pool.status().errors == {"inconsistent_answer:log": 9}


def test_fail__one_answer_that_a_hash_disproves__is_a_quarantine_at_once() -> None:
    pool = ClockedPool("a", "b")

    pool.fail(Disproved("block 7 at a", "fields that hash to 0x01", "0x02"))

    assert (pool.status().state, pool.rest()) == (EndpointState.QUARANTINED, 30)
    assert pool.status().errors == {"disproved:block": 1}
    assert pool.choose() == "b"


def test_others__endpoints_of_one_host__are_one() -> None:
    urls = ["http://a.test/key-one", "http://a.test/key-two", "http://b.test", "http://c.test"]
    pool = EndpointPool.connect(urls, lambda endpoint: None)
    first, second, third, fourth = pool.endpoints
    assert second.name == "http://a.test #2"

    assert pool.others(first) == pool.others(second) == (third, fourth)
    assert pool.others(third) == (first, second, fourth)
    pool.failed(third, Disproved("block 7 at b", "a hash", "another"))
    assert pool.others(first) == (fourth,)


def test_fail__third_contradiction_in_a_minute__is_a_quarantine_that_ends_with_a_check() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(contradiction(), times=3)
    assert (pool.status().state, pool.rest()) == (EndpointState.QUARANTINED, 30)

    pool.now += 29
    assert (pool.choose(), pool.jobs) == ("b", [])
    pool.now += 1
    assert (pool.choose(), pool.status().state) == ("b", EndpointState.QUARANTINED)
    assert pool.choose() == "b"
    [job] = pool.jobs
    job()

    assert pool.checked == ["a"]
    assert (pool.status().state, pool.status().until) == (EndpointState.AVAILABLE, None)


def test_recheck__contradicts_itself_still__stays_in_quarantine_for_twice_as_long() -> None:
    pool = ClockedPool("a", "b")
    pool.faults["a"] = contradiction()
    pool.fail(contradiction(), times=3)
    rests = []
    for _ in range(7):
        rests.append(pool.rest())
        pool.now += pool.rest()
        pool.choose()
        pool.jobs.pop()()

    assert rests == [30, 60, 120, 240, 480, 600, 600]
    assert pool.choose() == "b"


def test_recheck__passed_and_soon_in_doubt_again__is_a_longer_quarantine() -> None:
    pool = ClockedPool("a", "b")
    for _ in range(2):
        pool.fail(contradiction(), times=3)
        quarantine = pool.rest()
        pool.now += quarantine
        pool.choose()
        pool.jobs.pop()()
        pool.succeed()

    assert quarantine == 60
    pool.now += 3 * LONGEST_QUARANTINE_SECONDS
    pool.fail(contradiction(), times=3)
    assert pool.rest() == 30


def test_choose__the_only_endpoint_in_quarantine__is_checked_after_some_seconds() -> None:
    pool = ClockedPool("a")
    pool.fail(contradiction(), times=3)

    with pytest.raises(NoEndpointAvailable) as caught:
        pool.choose()
    assert caught.value.retry_after == LAST_RESORT_SECONDS
    pool.now += LAST_RESORT_SECONDS

    assert (pool.choose(), pool.checked) == ("a", ["a"])


def test_choose__the_only_one_fails_its_check__rests_again() -> None:
    pool = ClockedPool("a")
    pool.fail(contradiction(), times=3)
    pool.faults["a"] = down()
    pool.now += LAST_RESORT_SECONDS

    with pytest.raises(NoEndpointAvailable):
        pool.choose()

    assert pool.checked == ["a"]


def test_succeed__reported_late_by_another_thread__does_not_end_a_quarantine() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(contradiction(), times=3)

    pool.succeed()

    assert pool.status().state is EndpointState.QUARANTINED


# ------------------------------------------------------------------ fatal errors


def test_fail__another_chain__is_a_quarantine_until_a_check_passes() -> None:
    pool = ClockedPool("a", "b")
    pool.faults["a"] = WRONG_CHAIN
    pool.fail(WRONG_CHAIN)
    assert (pool.status().state, pool.rest()) == (EndpointState.QUARANTINED, 30)

    pool.now += 30
    pool.choose()
    pool.jobs.pop()()
    assert (pool.status().state, pool.rest()) == (EndpointState.QUARANTINED, 60)

    del pool.faults["a"]
    pool.now += 60
    pool.choose()
    pool.jobs.pop()()
    assert pool.status().state is EndpointState.AVAILABLE


def test_fail__no_access__is_not_asked_for_ten_minutes() -> None:
    pool = ClockedPool("a", "b")

    pool.fail(NO_ACCESS)

    assert (pool.status().state, pool.rest()) == (EndpointState.REFUSED, REFUSAL_SECONDS)
    assert pool.choose() == "b"


def test_fail__request_refused__rests_like_one_that_is_down() -> None:
    pool = ClockedPool("a")
    for _ in range(9):
        pool.fail(RefusedRequest("a", "a result", "no backend is currently healthy"))
        assert pool.status().state is EndpointState.COOLING
        pool.now += LONGEST_PAUSE_SECONDS
        assert pool.choose() == "a"


@pytest.mark.parametrize("other", [WRONG_CHAIN, NO_ACCESS], ids=repr)
def test_choose__all_closed_again_and_again__raises_the_first_ones_error(
    other: ChainError,
) -> None:
    pool = ClockedPool("a", "b")
    for _ in range(FAILURES_UNTIL_HOPELESS - 1):
        pool.fail(WRONG_CHAIN)
        pool.fail(other, "b")
        with pytest.raises(NoEndpointAvailable):
            pool.choose()
    pool.fail(WRONG_CHAIN)
    pool.fail(other, "b")

    with pytest.raises(WrongChain) as caught:
        pool.choose()

    assert str(caught.value) == str(WRONG_CHAIN)


def test_choose__closed_once__is_checked_again_soon() -> None:
    pool = ClockedPool("a")
    pool.fail(WRONG_CHAIN)
    pool.now += LAST_RESORT_SECONDS

    assert pool.choose() == "a"
    assert pool.checked == ["a"]


def test_keep_error__of_a_step__holds_no_frames_of_it() -> None:
    pool = ClockedPool("a")
    try:
        raise NO_ACCESS
    except AccessRefused as error:
        pool.fail(error)

    for _ in range(FAILURES_UNTIL_HOPELESS - 1):
        pool.fail(NO_ACCESS)
    with pytest.raises(AccessRefused) as caught:
        pool.choose()

    assert caught.value is not NO_ACCESS
    assert str(caught.value) == str(NO_ACCESS)
