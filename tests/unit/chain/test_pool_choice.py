from __future__ import annotations

import pytest
import requests

from chainkit.chain import Endpoint, EndpointPool, NoEndpointAvailable
from chainkit.chain.member import LONGEST_PAUSE_SECONDS, EndpointState
from chainkit.chain.pool import STANDSTILL_SECONDS
from chainkit.errors import (
    AccessRefused,
    ChainError,
    ConfigurationError,
    EndpointUnavailable,
    WrongChain,
)
from support.endpoints.clocked_pool import (
    NO_ACCESS,
    WRONG_CHAIN,
    ClockedPool,
    contradiction,
    down,
    limited,
)
from support.endpoints.fake_endpoint import FakeProvider

# ------------------------------------------------------------------ which one


def test_choose__all_well__is_the_first_and_stays_so() -> None:
    pool = ClockedPool("a", "b", "c")

    assert [pool.choose() for _ in range(3)] == ["a"] * 3
    assert pool.pool.seconds_until_available() == 0
    assert [each.state for each in pool.pool.statistics()] == [EndpointState.AVAILABLE] * 3


def test_choose__preferred_one_rests__is_the_next_until_the_preferred_one_passes_a_check() -> None:
    pool = ClockedPool("a", "b", "c")
    pool.choose()

    pool.fail(down())
    chosen = [pool.choose()]
    pool.succeed("b")
    pool.now += LONGEST_PAUSE_SECONDS
    chosen.append(pool.choose())
    # Its rest is over, but it was not asked since.
    assert pool.status().state is EndpointState.COOLING
    [check] = pool.jobs
    check()
    chosen.append(pool.choose())

    assert chosen == ["b", "b", "a"]
    assert pool.status().state is EndpointState.AVAILABLE


def test_choose__preferred_one_fails_its_checks__is_the_next_and_checks_come_seldom() -> None:
    pool = ClockedPool("a", "b")
    pool.faults["a"] = down()
    pool.fail(down())
    for _ in range(600):
        assert pool.choose() == "b"
        pool.succeed("b")
        while pool.jobs:
            pool.jobs.pop()()
        pool.now += 1

    # About one a minute, after the first few.
    assert 10 <= len(pool.checked) <= 20


def test_choose__preferred_one_passes_checks_but_fails_at_work__is_tried_seldom() -> None:
    pool = ClockedPool("a", "b")
    tried = 0
    for _ in range(600):
        if pool.choose() == "a":
            tried += 1
            pool.fail(down())
        else:
            pool.succeed("b")
        while pool.jobs:
            pool.jobs.pop()()
        pool.now += 1

    assert 10 <= tried <= 20


def test_choose__another_one_failed_once__is_checked_and_does_not_replace_the_preferred() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(down(), "b")
    pool.now += LONGEST_PAUSE_SECONDS
    pool.choose()
    [check] = pool.jobs
    check()

    assert pool.status("b").state is EndpointState.AVAILABLE
    assert pool.choose() == "a"


def test_choose__the_one_in_use_fails_too__is_the_first_that_is_well_again() -> None:
    pool = ClockedPool("a", "b", "c")
    pool.fail(down())
    pool.choose()
    pool.now += LONGEST_PAUSE_SECONDS

    pool.fail(down(), "b")

    assert pool.choose() == "a"


def test_choose__all_rest__says_how_long() -> None:
    pool = ClockedPool("a", "b")
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


def test_choose__one_out_for_good_and_one_down__waits() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(WRONG_CHAIN)
    pool.fail(down(), "b")

    with pytest.raises(NoEndpointAvailable):
        pool.choose()


# ------------------------------------------------------------------ a head that stands still


@pytest.mark.parametrize("standstills", [1, 2, 3])
def test_saw_head__nobody_saw_a_new_one__asks_the_next(standstills: int) -> None:
    pool = ClockedPool("a", "b")
    pool.pool.saw_head(pool.endpoints[0], 7)
    for _ in range(standstills):
        pool.now += STANDSTILL_SECONDS
        current = pool.choose()
        pool.pool.saw_head(pool.endpoints["ab".index(current)], 7)

    assert pool.choose() == "ba"[(standstills - 1) % 2]


def test_saw_head__head_moves__stays() -> None:
    pool = ClockedPool("a", "b")
    for number in range(5):
        pool.now += STANDSTILL_SECONDS
        pool.pool.saw_head(pool.endpoints[0], number)

    assert pool.choose() == "a"


def test_saw_head__the_others_rest__stays() -> None:
    pool = ClockedPool("a", "b")
    pool.fail(limited(200), "b")
    pool.pool.saw_head(pool.endpoints[0], 7)
    pool.now += STANDSTILL_SECONDS
    pool.pool.saw_head(pool.endpoints[0], 7)

    assert pool.choose() == "a"


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


def test_connect__one_wrong_answer_of_an_endpoint__is_no_mistake() -> None:
    answers = iter([WRONG_CHAIN])

    def check(endpoint: Endpoint) -> None:
        if error := next(answers, None):
            raise error

    assert EndpointPool.connect(KEYS, check).choose().name == "https://rpc.example"


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
    chosen.transport = provider = FakeProvider({}, [requests.ReadTimeout()] * 9)

    with pytest.raises(EndpointUnavailable):
        chosen.chain_id()

    assert len(provider.requests) == 1
