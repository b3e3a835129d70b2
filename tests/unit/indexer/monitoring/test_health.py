from __future__ import annotations

import pytest

from chainkit.chain import NoEndpointAvailable
from chainkit.errors import (
    ConfigurationError,
    EndpointUnavailable,
    InconsistentAnswer,
    ReorgTooDeep,
    StoreError,
    StoreUnavailable,
)
from chainkit.service.monitor_server import parse_listen
from chainkit_indexer.monitoring.health import ALIVE_SECONDS, GAP_ERRORS, Health
from chainkit_indexer.monitoring.limits import ReadyLimits
from support.indexer.loop_results import FIRST_TIMESTAMP, Clock, advanced, idle, rolled_back

DEAD = EndpointUnavailable("http://node", "an answer", "connection refused")
GAP = InconsistentAnswer("logs at http://node", "all up to sequence id 9", "up to 8")
DOWN = StoreUnavailable("database", "an answer", "connection refused")


class Machine:
    """A health whose two clocks move together."""

    def __init__(self, limits: ReadyLimits | None = None) -> None:
        self.monotonic, self.wall = Clock(), Clock(FIRST_TIMESTAMP)
        self.health = Health(limits or ReadyLimits(), self.monotonic, self.wall)

    def wait(self, seconds: float) -> None:
        self.monotonic.seconds += seconds
        self.wall.seconds += seconds

    def red(self) -> list[str]:
        return [check.name for check in self.health.checks() if not check.is_ok]


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_checks__before_the_first_step__nothing_is_known_so_nothing_is_ready(
    machine: Machine,
) -> None:
    assert machine.red() == ["head", "cursor", "step"]


def test_checks__at_the_head__all_hold(machine: Machine) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    machine.health.succeeded(idle(10), 0.1)

    assert machine.red() == []


def test_checks__head_stands_still__goes_red_at_the_limit_and_green_with_the_next_block(
    machine: Machine,
) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    machine.wait(59.9)
    machine.health.succeeded(idle(10), 0.1)
    assert machine.red() == []

    machine.wait(60.0)
    machine.health.succeeded(idle(10), 0.1)
    assert machine.red() == ["head"]

    machine.health.succeeded(advanced(11), 0.1)
    assert machine.red() == []


def test_checks__two_endpoints_stand_at_two_heights__is_no_movement(machine: Machine) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    machine.wait(61)
    for head in (9, 10, 9):
        machine.health.succeeded(idle(10, head), 0.1)

    assert machine.red() == ["head"]


def test_checks__shorter_chain_after_a_reorg__its_head_counts(machine: Machine) -> None:
    machine.health.succeeded(advanced(50), 0.1)
    machine.wait(70)

    machine.health.succeeded(rolled_back(5, depth=45, head=7), 0.1)

    assert machine.red() == []
    assert machine.health.observation.head is not None
    assert machine.health.observation.head.number == 7


def test_checks__first_head_is_old__counts_from_when_it_was_seen(machine: Machine) -> None:
    machine.wait(200)

    machine.health.succeeded(idle(10), 0.1)

    assert machine.red() == []
    [age] = [check for check in machine.health.checks() if check.name == "block_age"]
    assert (age.is_ok, age.limit) == (True, None)
    assert age.value == FIRST_TIMESTAMP + 200 - idle(10).head.timestamp
    machine.wait(60)
    machine.health.succeeded(idle(10), 0.1)
    assert machine.red() == ["head"]


def test_checks__first_head_is_of_the_future__is_fresh_for_as_long_as_any(
    machine: Machine,
) -> None:
    machine.health.succeeded(idle(10_000), 0.1)
    assert machine.red() == []

    machine.wait(60)
    machine.health.succeeded(idle(10_000), 0.1)
    assert machine.red() == ["head"]


def test_checks__chain_that_makes_blocks_on_demand__may_stand_still() -> None:
    machine = Machine(ReadyLimits(stale_seconds=0))
    machine.health.succeeded(advanced(10), 0.1)
    machine.wait(86_400)
    machine.health.succeeded(idle(10), 0.1)
    assert machine.red() == []

    machine.wait(60)
    assert machine.red() == ["step"]


@pytest.mark.parametrize(("head", "red"), [(20, []), (21, ["cursor"])])
def test_checks__cursor_behind_the_head__is_red_beyond_the_limit(
    machine: Machine, head: int, red: list[str]
) -> None:
    machine.health.succeeded(advanced(10, head), 0.1)

    assert machine.red() == red


def test_checks__serving_final_blocks__measures_from_the_final_block() -> None:
    machine = Machine(ReadyLimits(serves_final_only=True))
    machine.health.succeeded(advanced(100, head=1000, final_block=110), 0.1)
    assert machine.red() == []

    machine.health.succeeded(advanced(100, head=1000, final_block=111), 0.1)
    assert machine.red() == ["cursor"]


def test_observation__cursor_that_does_not_move__ages_only_while_it_has_where_to_go(
    machine: Machine,
) -> None:
    health = machine.health
    health.succeeded(advanced(10), 0.1)
    machine.wait(50)
    health.succeeded(idle(10), 0.1)
    assert health.age(health.observation.cursor_moved) == 0

    for head in (11, 12):
        machine.wait(5)
        health.succeeded(idle(10, head), 0.1)
    assert health.age(health.observation.cursor_moved) == 10


def test_checks__no_endpoint_answers__step_and_head_go_red_at_the_limit(machine: Machine) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    for _ in range(60):
        machine.wait(1)
        machine.health.failed(DEAD)

    assert machine.red() == ["head", "step"]


def test_checks__contradictions_that_stay__are_a_gap_until_a_step_succeeds(
    machine: Machine,
) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    for _ in range(GAP_ERRORS - 1):
        machine.health.failed(GAP)
        machine.health.failed(DEAD)
    assert machine.red() == []

    machine.health.failed(GAP)
    assert machine.red() == ["sequence"]

    machine.health.succeeded(advanced(11), 0.1)
    assert machine.red() == []


def test_observation__endpoints_rest_after_an_error__keeps_the_error(machine: Machine) -> None:
    resting = NoEndpointAvailable("http://node", "one", "none for 5.0 s")
    machine.health.failed(resting)
    assert machine.health.observation.error is resting

    machine.health.failed(GAP)
    machine.health.failed(resting)
    assert machine.health.observation.error is GAP


def test_checks__database_gone__stays_red_behind_other_errors(machine: Machine) -> None:
    machine.health.succeeded(advanced(10), 0.1)
    machine.health.failed(DOWN)
    machine.health.failed(DEAD)

    (check,) = [check for check in machine.health.checks() if not check.is_ok]
    assert (check.name, check.value) == ("database", "unavailable")

    machine.health.succeeded(idle(10), 0.1)
    assert machine.red() == []


@pytest.mark.parametrize("error", [ReorgTooDeep("chain", "a", "b"), StoreError("db", "a", "b")])
def test_alive__loop_ended_by_an_error__is_not(machine: Machine, error: ReorgTooDeep) -> None:
    machine.health.succeeded(advanced(10), 0.1)

    machine.health.stopped(error)

    assert not machine.health.alive().is_ok
    assert machine.red()[0] == "loop"


def test_alive__errors_only__is_while_the_loop_turns(machine: Machine) -> None:
    machine.wait(ALIVE_SECONDS - 1)
    machine.health.failed(DEAD)
    machine.wait(ALIVE_SECONDS - 1)
    assert machine.health.alive().is_ok

    machine.wait(1)
    assert not machine.health.alive().is_ok


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:9464", ("::1", 9464)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_parse_listen__address__is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_listen(text) == expected


@pytest.mark.parametrize("text", ["", "9464", ":9464", "host", "host:", "host:-1", "host:65536"])
def test_parse_listen__anything_else__says_what_it_takes(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--listen: expected HOST:PORT, got"):
        parse_listen(text)
