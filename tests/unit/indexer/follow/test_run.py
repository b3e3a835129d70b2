import signal
from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.heads import HeadWatcher
from chainkit.errors import (
    ChainkitError,
    EndpointUnavailable,
    InconsistentAnswer,
    RateLimited,
    ReorgTooDeep,
    StoreError,
    StoreUnavailable,
)
from chainkit.types import BlockHeader
from chainkit_indexer.follow.loop import Goal, StopRequest, run
from chainkit_indexer.types import Advanced, Idle, Provenance, RolledBack, StepResult
from support.chains.fake_chain import FakeChain

DEAD = EndpointUnavailable("http://node", "an answer", "connection refused")
CUT = InconsistentAnswer("logs", "all", "some")
TOO_DEEP = ReorgTooDeep("chain", "the final block 1", "block 1")
NO_DATABASE = StoreUnavailable("database", "an answer", "none")


def header(number: int) -> BlockHeader:
    return BlockHeader(number, bytes([number]) * 32, bytes(32), number)


def advanced(number: int) -> Advanced:
    return Advanced(
        number, header(number).reference, header(9), -1, 1, 0, {0: number}, Provenance.RECEIPTS
    )


def idle(number: int) -> Idle:
    return Idle(header(number).reference, header(number), -1)


ROLLED_BACK = RolledBack(1, 1, header(0).reference, header(9), -1, 2)


UNTIL_IDLE = Goal(until_idle=lambda result: True)


class World(StopRequest):
    """A clock that moves only when somebody waits, and what the loop did meanwhile."""

    def __init__(self, *outcomes: StepResult | ChainkitError, endpoints: int = 1) -> None:
        super().__init__()
        self.now = 100.0
        self.pauses: list[float] = []
        self.waits_for_heads = 0
        self.asked: list[Endpoint] = []
        self.seen: list[StepResult | ChainkitError] = []
        self.background_work: list[StepResult] = []
        self.is_busy: Iterator[bool] = iter(())
        self.outcomes = iter(outcomes)
        fake_chain = FakeChain()
        self.pool = EndpointPool(
            [Endpoint(fake_chain, f"endpoint {number}") for number in range(endpoints)],
            clock=lambda: self.now,
        )

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def take_step(self, endpoint: Endpoint) -> StepResult:
        self.asked.append(endpoint)
        outcome = next(self.outcomes)
        if isinstance(outcome, ChainkitError):
            raise outcome
        return outcome

    def succeeded(self, result: StepResult, seconds: float) -> None:
        self.seen.append(result)

    def failed(self, error: ChainkitError) -> None:
        self.seen.append(error)

    def run(self, goal: Goal) -> None:
        def background(endpoint: Endpoint, result: StepResult) -> bool:
            self.background_work.append(result)
            return next(self.is_busy, False)

        heads = Heads(self)
        run(self.take_step, self.pool, heads, goal, self, self, background, lambda: self.now)


class Heads(HeadWatcher):
    """Counts how often the loop waits for a head."""

    def __init__(self, world: World) -> None:
        super().__init__(None, 0.25)
        self.world = world

    def wait(self, is_stopped: Callable[[], bool], seconds: float | None = None) -> bool:
        self.world.waits_for_heads += 1
        return True


def test_run__work_to_do__waits_for_a_head_only_when_idle() -> None:
    world = World(advanced(1), ROLLED_BACK, advanced(1), idle(1), advanced(2))
    world.run(Goal(until_block=2))

    assert world.waits_for_heads == 1
    assert world.pauses == []
    assert world.background_work == [advanced(1), ROLLED_BACK, advanced(1), idle(1), advanced(2)]


def test_run__until_idle__ends_at_the_first_idle_step() -> None:
    world = World(advanced(1), idle(1))
    world.run(UNTIL_IDLE)

    assert world.seen == [advanced(1), idle(1)]


def test_run__reorg_that_shortens_the_chain__its_head_is_the_highest_one() -> None:
    shorter = RolledBack(1, 8, header(0).reference, header(4), -1, 2)
    world = World(advanced(1), shorter, idle(4))
    world.run(Goal(until_idle=lambda result: world.pool.highest_head == 4))

    assert world.seen == [advanced(1), shorter, idle(4)]


def test_run__until_idle_and_another_endpoint_is_ahead__waits_and_goes_on() -> None:
    world = World(idle(1), advanced(2), idle(2))
    world.run(Goal(until_idle=lambda result: result.head.number == 2))

    assert world.seen == [idle(1), advanced(2), idle(2)]
    assert world.waits_for_heads == 1


def test_run__background_work_left__neither_waits_nor_ends() -> None:
    world = World(idle(1), idle(1), idle(1))
    world.is_busy = iter([True, True])
    world.run(UNTIL_IDLE)

    assert len(world.seen) == 3
    assert world.waits_for_heads == 0


def test_run__endpoint_that_fails__rests_and_is_asked_again() -> None:
    world = World(DEAD, DEAD, advanced(1), CUT, idle(1))
    world.run(UNTIL_IDLE)

    assert [each for each in world.seen if each in (DEAD, CUT)] == [DEAD, DEAD, CUT]
    assert len(world.pauses) == 3
    assert all(pause > 0 for pause in world.pauses)
    [status] = world.pool.statistics()
    assert status.errors["endpoint_unavailable"] == 2


def test_run__one_of_two_endpoints_fails__goes_on_with_the_other_at_once() -> None:
    world = World(DEAD, advanced(1), idle(1), endpoints=2)
    world.run(UNTIL_IDLE)

    first, second = world.pool.endpoints
    assert world.asked == [first, second, second]
    assert world.pauses == []


def test_run__endpoint_is_due_but_is_being_checked__pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(idle(1))
    choose, refusals = world.pool.choose, iter([DEAD] * 3)

    def choose_after_the_check() -> Endpoint:
        for refusal in refusals:
            raise refusal
        return choose()

    monkeypatch.setattr(world.pool, "choose", choose_after_the_check)
    world.run(UNTIL_IDLE)

    assert world.seen == [DEAD, DEAD, DEAD, idle(1)]
    assert len(world.pauses) == 3 and min(world.pauses) > 0


def test_run__database_that_does_not_answer__waits_and_blames_no_endpoint() -> None:
    world = World(NO_DATABASE, NO_DATABASE, advanced(1), idle(1))
    world.run(UNTIL_IDLE)

    assert len(world.pauses) == 2
    assert world.seen[:2] == [NO_DATABASE, NO_DATABASE]
    [status] = world.pool.statistics()
    assert status.errors == {}


def test_run__error_of_the_database__ends_the_loop() -> None:
    with pytest.raises(StoreError, match="another process"):
        World(StoreError("database", "the cursor", "another", "another process")).run(Goal())


def test_run__one_of_two_endpoints_contradicts_the_final_block__goes_on() -> None:
    world = World(*[TOO_DEEP, advanced(1)] * 20, idle(1), endpoints=2)
    world.run(UNTIL_IDLE)

    assert world.seen[-1] == idle(1)


@pytest.mark.parametrize("endpoints", [1, 2])
def test_run__all_endpoints_contradict_the_final_block_again_and_again__ends(
    endpoints: int,
) -> None:
    world = World(*[TOO_DEEP] * 10, endpoints=endpoints)
    with pytest.raises(ReorgTooDeep):
        world.run(Goal())

    assert set(world.asked) == set(world.pool.endpoints)
    assert len(world.asked) == 3 * endpoints


def test_run__one_endpoint_dead_and_the_other_contradicts_the_final_block__ends_in_a_while() -> (
    None
):
    world = World(endpoints=2)

    def take_step(endpoint: Endpoint) -> StepResult:
        world.asked.append(endpoint)
        raise TOO_DEEP if endpoint is world.pool.endpoints[0] else DEAD

    with pytest.raises(ReorgTooDeep):
        run(take_step, world.pool, Heads(world), Goal(), world, world, clock=lambda: world.now)

    assert 160 <= world.now < 300


@pytest.mark.parametrize("times", [1, 2])
def test_run__both_contradict_the_final_block_and_one_dies_before_it_is_believed__ends_in_a_while(
    times: int,
) -> None:
    world = World(endpoints=2)
    first, second = world.pool.endpoints
    answers: dict[Endpoint, Iterator[ChainkitError]] = {
        first: repeat(TOO_DEEP),
        second: chain([TOO_DEEP] * times, repeat(DEAD)),
    }

    def take_step(endpoint: Endpoint) -> StepResult:
        world.asked.append(endpoint)
        if world.now > 1000:
            pytest.fail("the reorg is never believed")
        raise next(answers[endpoint])

    with pytest.raises(ReorgTooDeep):
        run(take_step, world.pool, Heads(world), Goal(), world, world, clock=lambda: world.now)

    assert 160 <= world.now < 300
    assert world.asked.count(first) >= 3


def test_run__one_endpoint_contradicts_the_final_block_and_the_other_rests__waits_for_it() -> None:
    world = World(endpoints=2)
    limited = RateLimited("http://node", "an answer", "HTTP 429")
    limited.retry_after = 30.0
    answers: dict[Endpoint, Iterator[StepResult | ChainkitError]] = {
        world.pool.endpoints[0]: repeat(TOO_DEEP),
        world.pool.endpoints[1]: iter([limited, idle(1)]),
    }

    def take_step(endpoint: Endpoint) -> StepResult:
        outcome = next(answers[endpoint])
        if isinstance(outcome, ChainkitError):
            raise outcome
        return outcome

    goal = UNTIL_IDLE
    run(take_step, world.pool, Heads(world), goal, world, world, clock=lambda: world.now)

    assert world.seen[-1] == idle(1)


def test_run__endpoint_alternates_between_branches__is_doubted() -> None:
    world = World(*[ROLLED_BACK, advanced(1)] * 6, idle(1))
    world.run(UNTIL_IDLE)

    [status] = world.pool.statistics()
    assert status.errors == {"inconsistent_answer:chain": 1}
    assert len(world.pauses) == 1


def test_run__database_that_does_not_answer_for_days__goes_on() -> None:
    world = World(*[NO_DATABASE] * 3000, idle(1))
    world.run(UNTIL_IDLE)

    assert max(world.pauses) <= 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run__signal__ends_after_the_step(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    world = World(idle(1))
    finished = []

    def take_step(endpoint: Endpoint) -> StepResult:
        signal.raise_signal(number)
        finished.append(True)
        return world.take_step(endpoint)

    try:
        world.listen()
        run(take_step, world.pool, HeadWatcher(None, 60.0), Goal(), world, world)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

    assert finished == [True]
