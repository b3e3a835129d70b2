from __future__ import annotations

from chainkit.chain import NoEndpointAvailable
from chainkit.errors import StoreUnavailable
from chainkit_node.serving.readiness import Readiness
from support.indexer.loop_results import advanced, idle

AWAY = StoreUnavailable("database", "an answer", "none")
UNREACHABLE = NoEndpointAvailable("chain", "an endpoint", "none")


def test_readiness__before_the_first_step__is_not_told() -> None:
    reported: list[bool] = []
    readiness = Readiness(reported.append)

    readiness.failed(UNREACHABLE)
    assert reported == []
    readiness.succeeded(idle(1), 0.1)
    assert reported == [True]


def test_readiness__database_away_and_back__is_told_once_each() -> None:
    reported: list[bool] = []
    readiness = Readiness(reported.append)
    readiness.succeeded(advanced(1), 0.1)

    for error in (AWAY, AWAY, UNREACHABLE):
        readiness.failed(error)
    for _ in range(2):
        readiness.succeeded(idle(1), 0.1)

    assert reported == [True, False, True]


def test_readiness__chain_out_of_reach__stays_ready_for_readers() -> None:
    reported: list[bool] = []
    readiness = Readiness(reported.append)
    readiness.succeeded(advanced(1), 0.1)

    readiness.failed(UNREACHABLE)

    assert reported == [True]
