from __future__ import annotations

import itertools
import threading

import pytest

from chainkit.chain import EndpointPool
from chainkit.errors import ChainError
from support.endpoints.clocked_pool import (
    NO_ACCESS,
    WRONG_CHAIN,
    ClockedPool,
    contradiction,
    down,
    endpoint,
    limited,
)


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
    pool = ClockedPool("a", "b")

    pool.fail(error, times=2)

    assert pool.status().errors == {kind: 2}
    assert pool.status("b").errors == {}


def test_count__requests_of_an_endpoint__with_the_time_spent() -> None:
    pool = ClockedPool("a", "b")

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
