"""A node whose clock others contradict, and the witnesses that do not suffice."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from chainkit.errors import StoreUnavailable
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.types import Idle
from chainkit_node.originating.clock_check import ClockCheck, ClockContradicted
from support.indexer.loop_results import Clock, header, idle, rolled_back

NOW = 1_800_000_000


class World:
    """A node whose clock is ahead of the true time by ``ahead`` seconds; the time stands still."""

    def __init__(self, ahead: float = 0.0, trusts_blocks: bool = True) -> None:
        self.true = float(NOW)
        self.ahead = ahead
        self.steady = Clock(50.0)
        self.own_ns = 0
        self.check = ClockCheck(
            lambda: self.own_ns, trusts_blocks, lambda: self.true + self.ahead, self.steady
        )

    def passes(self, seconds: float) -> None:
        self.true += seconds
        self.steady.seconds += seconds

    def block(self, number: int, late: float = 0.0) -> None:
        """Let the node see a block, made ``late`` seconds before."""
        head = replace(header(number), timestamp=int(self.true - late))
        self.check.succeeded(Idle(idle(number).cursor, head, -1), 0.0)

    def chain(self, late: float = 0.0) -> None:
        """Let the head move once, as the node sees it."""
        self.block(1, late)
        self.block(2, late)

    def node(self, node_id: int, ahead: float = 0.0) -> None:
        """Let another node tell its clock, which is so far ahead of the true time."""
        self.check.told(node_id, int((self.true + ahead) * NANOSECONDS_PER_SECOND), 0.0)


@pytest.mark.parametrize(("ahead", "words"), [(600.0, "600 s ahead"), (-600.0, "600 s behind")])
def test_clock__apart_from_the_newest_block__is_contradicted(ahead: float, words: str) -> None:
    world = World(ahead)
    world.chain()

    expected = "clock: expected one within 120 s of block 2, got one " + words
    with pytest.raises(ClockContradicted) as raised:
        world.check.check()

    assert str(raised.value) == expected
    assert not world.check.readiness().is_ok


def test_clock__first_block_is_old__says_nothing() -> None:
    world = World()
    world.block(1, late=5_000.0)

    world.check.check()
    # A reorg shows a head of which nobody knows since when it is the newest.
    world.chain()
    world.check.succeeded(rolled_back(1), 0.0)
    world.check.check()


def test_clock__block_that_came_while_no_endpoint_answered__says_nothing() -> None:
    world = World()
    world.block(1)
    world.passes(600.0)
    world.block(2, late=500.0)
    world.check.check()

    world.passes(5.0)
    world.block(3, late=500.0)
    assert world.check.wrong() is not None


def test_clock__chain_stands_still_by_the_operators_word__is_no_witness() -> None:
    world = World(600.0, trusts_blocks=False)
    world.chain()

    world.check.check()


def test_clock__set_while_the_node_runs__is_noticed_at_once_and_so_is_its_repair() -> None:
    world = World()
    world.chain()
    world.passes(300.0)
    world.check.check()

    world.ahead = 121.0
    assert world.check.wrong() is not None
    world.ahead = -119.0
    assert world.check.wrong() is None


def test_clock__witness_of_long_ago__counts_no_more() -> None:
    world = World()
    world.chain()
    # A machine that was suspended: the clock that only grows stood.
    world.true += 3_600.0
    assert world.check.wrong() is not None

    world.passes(601.0)
    assert world.check.wrong() is None


@pytest.mark.parametrize(
    ("nodes", "is_contradicted"),
    [
        ([600.0], False),
        ([600.0, 600.0], True),
        ([600.0, 600.0, 0.0], True),
        ([600.0, 600.0, 0.0, 0.0], False),
        ([119.0, -119.0, 600.0], False),
    ],
)
def test_clock__other_nodes_alone__needs_two_and_more_than_agree(
    nodes: list[float], is_contradicted: bool
) -> None:
    world = World()
    for number, ahead in enumerate(nodes):
        world.node(100 * number, ahead)

    assert (world.check.wrong() is not None) == is_contradicted


def test_clock__chain_agrees__no_number_of_nodes_contradicts() -> None:
    world = World()
    world.chain()
    for node_id in (200, 300, 400):
        world.node(node_id, 600.0)

    world.check.check()


def test_clock__endpoint_lags__two_nodes_that_agree_outweigh_it() -> None:
    world = World()
    world.chain(late=600.0)
    world.node(200)
    assert world.check.wrong() is not None

    world.node(300)
    world.check.check()


@pytest.mark.parametrize(("ahead", "judged_by"), [(0.0, 0.0), (600.0, 600.0), (-600.0, 0.0)])
def test_clock__behind__others_are_judged_by_the_chains_time(
    ahead: float, judged_by: float
) -> None:
    world = World(ahead)
    world.chain()
    # One node's word from the far future changes nothing where the chain speaks.
    world.node(200, 1e9)

    assert world.check.latest_ns() == int((NOW + judged_by) * NANOSECONDS_PER_SECOND)


def test_clock__behind_the_own_last_envelope__is_named_before_anybody_publishes() -> None:
    world = World()
    world.own_ns = int((NOW + 301) * NANOSECONDS_PER_SECOND)
    world.block(1)

    assert world.check.wrong() == (
        "clock: expected one at most 300 s behind this node's last envelope, got one 301 s behind"
    )


def test_clock__database_away__keeps_what_is_known() -> None:
    def away() -> int:
        raise StoreUnavailable("database", "an answer", "none")

    ClockCheck(away).succeeded(idle(1), 0.0)


def test_clock__contradicted_and_right_again__is_logged_once_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(600.0)
    with caplog.at_level(logging.INFO):
        world.chain()
        for number in range(3, 60):
            world.passes(10.0)
            world.block(number)
        world.ahead = 0.0
        for number in range(60, 90):
            world.block(number)

    events = [record.event.name for record in caplog.records]  # type: ignore[attr-defined]
    assert events == ["clock_contradicted", "clock_agrees"]
