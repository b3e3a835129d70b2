from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest
import requests

from chainkit.chain import Endpoint, EndpointPool, NoEndpointAvailable
from chainkit.chain.member import (
    FAILURES_UNTIL_HOPELESS,
    LAST_RESORT_SECONDS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_QUARANTINE_SECONDS,
    REFUSAL_SECONDS,
    EndpointState,
    EndpointStatus,
)
from chainkit.chain.pool import STANDSTILL_SECONDS
from chainkit.errors import (
    AccessRefused,
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    RangeRefused,
    RateLimited,
    RefusedRequest,
    WrongChain,
)
from support.fake_endpoint import FakeProvider

Check = Callable[[Endpoint], object]


def endpoint(name: str) -> Endpoint:
    return Endpoint(FakeProvider({"eth_chainId": "0x1"}), name)


def down() -> EndpointUnavailable:
    return EndpointUnavailable("a", "an answer", "a time-out")


def contradiction(subject: str = "log at a") -> InconsistentAnswer:
    return InconsistentAnswer(subject, "one", "another")


def limited(retry_after: float | None = None) -> RateLimited:
    error = RateLimited("a", "an answer", "HTTP 429")
    error.retry_after = retry_after
    return error


WRONG_CHAIN = WrongChain("chain id at a", 1, 2)
NO_ACCESS = AccessRefused("a", "HTTP 200", "HTTP 403")


class Pool:
    """A pool on a clock of its own, without chance, whose checks fail as told."""

    def __init__(self, *names: str, draw: float = 1.0) -> None:
        self.now = 1000.0
        self.endpoints = [endpoint(name) for name in names]
        self.checked: list[str] = []
        self.faults: dict[str, ChainError] = {}
        self.jobs: list[Callable[[], None]] = []
        self.pool = EndpointPool(
            self.endpoints,
            self._check,
            clock=lambda: self.now,
            random=lambda: draw,
            in_background=self.jobs.append,
        )

    def _check(self, endpoint: Endpoint) -> None:
        self.checked.append(endpoint.name)
        if error := self.faults.get(endpoint.name):
            raise error

    def choose(self) -> str:
        return self.pool.choose().name

    def fail(self, error: ChainError, name: str = "a", times: int = 1) -> None:
        for _ in range(times):
            self.pool.failed(self._of(name), error)

    def succeed(self, name: str = "a") -> None:
        self.pool.succeeded(self._of(name))

    def _of(self, name: str) -> Endpoint:
        return next(each for each in self.endpoints if each.name == name)

    def status(self, name: str = "a") -> EndpointStatus:
        return next(each for each in self.pool.statistics() if each.name == name)

    def rest(self, name: str = "a") -> float:
        until = self.status(name).until
        return 0 if until is None else until - self.now


# ------------------------------------------------------------------ which one


def test_choose__all_well__is_the_first_and_stays_so() -> None:
    pool = Pool("a", "b", "c")

    assert [pool.choose() for _ in range(3)] == ["a"] * 3
    assert pool.pool.seconds_until_available() == 0
    assert [each.state for each in pool.pool.statistics()] == [EndpointState.AVAILABLE] * 3


def test_choose__first_one_rests__is_the_next_and_stays_with_it() -> None:
    pool = Pool("a", "b", "c")
    pool.choose()

    pool.fail(down())
    chosen = [pool.choose()]
    pool.succeed("b")
    pool.now += LONGEST_PAUSE_SECONDS
    chosen.append(pool.choose())

    assert chosen == ["b", "b"]
    # Its rest is over, but nobody knows whether it works again.
    assert pool.status().state is EndpointState.COOLING


def test_choose__the_one_in_use_fails_too__is_the_first_that_is_well_again() -> None:
    pool = Pool("a", "b", "c")
    pool.fail(down())
    pool.choose()
    pool.now += LONGEST_PAUSE_SECONDS

    pool.fail(down(), "b")

    assert pool.choose() == "a"


def test_choose__all_rest__says_how_long() -> None:
    pool = Pool("a", "b")
    pool.fail(limited(20))
    pool.fail(limited(7), "b")

    with pytest.raises(NoEndpointAvailable) as caught:
        pool.choose()

    assert caught.value.retry_after == 7 == pool.pool.seconds_until_available()
    assert str(caught.value) == "a, b: expected one that is available, got none for 7.0 s"
    assert isinstance(caught.value, EndpointUnavailable)
    pool.now += 7
    assert pool.choose() == "b"


def test_create_pool__no_endpoint__is_refused() -> None:
    with pytest.raises(ConfigurationError, match="RPC endpoints: expected at least one"):
        EndpointPool([])


# ------------------------------------------------------------------ how long


def test_fail__endpoint_unavailable__rests_longer_each_time_up_to_the_longest() -> None:
    pool = Pool("a", "b")
    rests = []
    for _ in range(12):
        pool.fail(down())
        rests.append(pool.rest())
        pool.now += pool.rest()

    assert rests == pytest.approx([min(0.2 * 2**number, 60) for number in range(12)])
    assert pool.status().consecutive_failures == 12


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.99])
def test_fail__endpoint_unavailable__rests_by_chance_but_not_never(draw: float) -> None:
    pool = Pool("a", "b", draw=draw)

    pool.fail(down())
    first = pool.rest()
    pool.fail(down(), times=9)

    assert first == pytest.approx(max(0.05, 0.2 * draw))
    assert pool.rest() == pytest.approx(max(0.05, 60 * draw))


def test_succeed__after_failures__starts_anew() -> None:
    pool = Pool("a", "b")
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
    pool = Pool("a")

    pool.fail(limited(retry_after))

    assert pool.rest() == pytest.approx(rest)
    assert pool.pool.seconds_until_available() == pytest.approx(rest)


def test_fail__another_error_while_rate_limited__does_not_end_the_rest() -> None:
    pool = Pool("a", "b")
    pool.fail(limited(200))

    pool.fail(down())

    assert pool.rest() == 200


def test_fail__range_refused__is_counted_and_no_fault() -> None:
    pool = Pool("a", "b")

    pool.fail(RangeRefused("logs", "logs", "no"), times=9)

    assert pool.choose() == "a"
    assert pool.status().consecutive_failures == 0
    assert pool.status().errors == {"range_refused": 9}


def test_choose__all_that_may_only_be_slow_rest_long__asks_one_after_some_seconds() -> None:
    pool = Pool("a")
    pool.fail(down(), times=20)
    assert pool.rest() == LONGEST_PAUSE_SECONDS

    assert pool.pool.seconds_until_available() == LAST_RESORT_SECONDS
    pool.now += LAST_RESORT_SECONDS

    assert pool.choose() == "a"
    assert pool.status().state is EndpointState.COOLING


# ------------------------------------------------------------------ quarantine


def test_fail__contradictions_now_and_then__are_a_short_pause() -> None:
    pool = Pool("a", "b")

    for _ in range(9):
        pool.fail(contradiction())
        assert pool.status().state is EndpointState.COOLING
        assert pool.rest() < 1
        pool.now += 31

    assert pool.checked == []


def test_fail__contradictions_between_successes__are_a_short_pause() -> None:
    pool = Pool("a", "b")

    for _ in range(9):
        pool.fail(contradiction())
        pool.now += 1
        pool.succeed()

    assert pool.status().state is EndpointState.AVAILABLE
    assert pool.status().errors == {"inconsistent_answer:log": 9}


def test_fail__third_contradiction_in_a_minute__is_a_quarantine_that_ends_with_a_check() -> None:
    pool = Pool("a", "b")
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
    pool = Pool("a", "b")
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
    pool = Pool("a", "b")
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
    pool = Pool("a")
    pool.fail(contradiction(), times=3)

    with pytest.raises(NoEndpointAvailable) as caught:
        pool.choose()
    assert caught.value.retry_after == LAST_RESORT_SECONDS
    pool.now += LAST_RESORT_SECONDS

    assert (pool.choose(), pool.checked) == ("a", ["a"])


def test_choose__the_only_one_fails_its_check__rests_again() -> None:
    pool = Pool("a")
    pool.fail(contradiction(), times=3)
    pool.faults["a"] = down()
    pool.now += LAST_RESORT_SECONDS

    with pytest.raises(NoEndpointAvailable):
        pool.choose()

    assert pool.checked == ["a"]


def test_succeed__reported_late_by_another_thread__does_not_end_a_quarantine() -> None:
    pool = Pool("a", "b")
    pool.fail(contradiction(), times=3)

    pool.succeed()

    assert pool.status().state is EndpointState.QUARANTINED


# ------------------------------------------------------------------ fatal errors


def test_fail__another_chain__is_a_quarantine_until_a_check_passes() -> None:
    pool = Pool("a", "b")
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
    pool = Pool("a", "b")

    pool.fail(NO_ACCESS)

    assert (pool.status().state, pool.rest()) == (EndpointState.REFUSED, REFUSAL_SECONDS)
    assert pool.choose() == "b"


def test_fail__request_refused__rests_like_one_that_is_down() -> None:
    pool = Pool("a")
    for _ in range(9):
        pool.fail(RefusedRequest("a", "a result", "no backend is currently healthy"))
        assert pool.status().state is EndpointState.COOLING
        pool.now += LONGEST_PAUSE_SECONDS
        assert pool.choose() == "a"


@pytest.mark.parametrize("other", [WRONG_CHAIN, NO_ACCESS], ids=repr)
def test_choose__all_closed_again_and_again__raises_the_first_ones_error(
    other: ChainError,
) -> None:
    pool = Pool("a", "b")
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
    pool = Pool("a")
    pool.fail(WRONG_CHAIN)
    pool.now += LAST_RESORT_SECONDS

    assert pool.choose() == "a"
    assert pool.checked == ["a"]


@pytest.mark.parametrize("standstills", [1, 2, 3])
def test_saw_head__nobody_saw_a_new_one__asks_the_next(standstills: int) -> None:
    pool = Pool("a", "b")
    pool.pool.saw_head(pool.endpoints[0], 7)
    for _ in range(standstills):
        pool.now += STANDSTILL_SECONDS
        current = pool.choose()
        pool.pool.saw_head(pool.endpoints["ab".index(current)], 7)

    assert pool.choose() == "ba"[(standstills - 1) % 2]


def test_saw_head__head_moves__stays() -> None:
    pool = Pool("a", "b")
    for number in range(5):
        pool.now += STANDSTILL_SECONDS
        pool.pool.saw_head(pool.endpoints[0], number)

    assert pool.choose() == "a"


def test_saw_head__the_others_rest__stays() -> None:
    pool = Pool("a", "b")
    pool.fail(limited(200), "b")
    pool.pool.saw_head(pool.endpoints[0], 7)
    pool.now += STANDSTILL_SECONDS
    pool.pool.saw_head(pool.endpoints[0], 7)

    assert pool.choose() == "a"


def test_choose__one_out_for_good_and_one_down__waits() -> None:
    pool = Pool("a", "b")
    pool.fail(WRONG_CHAIN)
    pool.fail(down(), "b")

    with pytest.raises(NoEndpointAvailable):
        pool.choose()


def test_keep_error__of_a_step__holds_no_frames_of_it() -> None:
    pool = Pool("a")
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


# ------------------------------------------------------------------ the start

KEYS = [
    "https://rpc.example/v2/hush-one",
    "https://rpc.example/v2/hush-two",
    "http://other.example",
]


def connect(faults: dict[str, ChainError]) -> EndpointPool:
    def check(endpoint: Endpoint) -> None:
        if error := faults.get(endpoint.name):
            raise error

    return EndpointPool.connect(KEYS, check)


def test_connect__two_keys_of_one_host__are_told_apart_without_the_keys() -> None:
    names = [each.name for each in connect({}).statistics()]

    assert names == ["https://rpc.example", "https://rpc.example #2", "http://other.example"]


def test_connect__endpoint_of_another_chain__is_a_mistake() -> None:
    with pytest.raises(WrongChain):
        connect({"http://other.example": WRONG_CHAIN, "https://rpc.example": down()})


@pytest.mark.parametrize("error", [down(), limited(60), NO_ACCESS, contradiction()], ids=repr)
def test_connect__one_out_of_order__rests_while_another_works(error: ChainError) -> None:
    pool = connect({"https://rpc.example": error})

    assert pool.choose().name == "https://rpc.example #2"
    assert pool.statistics()[0].state is not EndpointState.AVAILABLE


def test_connect__all_out_of_order__is_the_error_of_the_first() -> None:
    faults = {
        "https://rpc.example": NO_ACCESS,
        "https://rpc.example #2": down(),
        "http://other.example": limited(),
    }

    with pytest.raises(AccessRefused) as caught:
        connect(faults)

    assert caught.value is NO_ACCESS


def test_ask__endpoint_of_a_pool__tries_once() -> None:
    [chosen] = {connect({}).choose()}
    chosen.provider = provider = FakeProvider({}, [requests.ReadTimeout()] * 9)

    with pytest.raises(EndpointUnavailable):
        chosen.chain_id()

    assert len(provider.requests) == 1


# ------------------------------------------------------------------ statistics


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (down(), "endpoint_unavailable"),
        (limited(), "rate_limited"),
        (WRONG_CHAIN, "wrong_chain"),
        (NO_ACCESS, "access_refused"),
        (contradiction("logs of blocks 5 to 8 at a"), "inconsistent_answer:logs"),
        (contradiction("block 7 at a"), "inconsistent_answer:block"),
        (contradiction("eth_chainId at a"), "inconsistent_answer:eth_chainid"),
        (contradiction("7 things"), "inconsistent_answer"),
    ],
    ids=repr,
)
def test_count__any_error__by_its_kind(error: ChainError, kind: str) -> None:
    pool = Pool("a", "b")

    pool.fail(error, times=2)

    assert pool.status().errors == {kind: 2}
    assert pool.status("b").errors == {}


def test_count__requests_of_an_endpoint__with_the_time_spent() -> None:
    pool = Pool("a", "b")

    for _ in range(3):
        pool.pool.choose().chain_id()

    assert [each.requests for each in pool.pool.statistics()] == [3, 0]
    assert pool.status().seconds_spent > 0
    assert pool.status("b").seconds_spent == 0


def test_use__from_many_threads__loses_no_count() -> None:
    names = [str(number) for number in range(5)]
    clock = itertools.count(step=1000)
    endpoints = [endpoint(name) for name in names]
    pool = EndpointPool(endpoints, clock=lambda: next(clock))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(200):
                chosen = pool.choose()
                if number % 3:
                    pool.succeeded(chosen)
                else:
                    pool.failed(chosen, down())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert (
        sum(each.errors["endpoint_unavailable"] for each in pool.statistics() if each.errors) == 268
    )
