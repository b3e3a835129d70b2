import logging
import signal
from collections.abc import Callable

import pytest

from chainkit.errors import EndpointUnavailable, ReorgTooDeep, RetryableChainError
from chainkit.types import BlockReference
from chainkit_indexer.narration import Narrator
from chainkit_indexer.run import Goal, StopRequest, run
from chainkit_indexer.types import Advanced, Idle, RolledBack, StepResult

DEAD = EndpointUnavailable("http://node", "an answer", "connection refused")


def block(number: int) -> BlockReference:
    return BlockReference(number, bytes([number]) * 32)


def advanced(number: int, envelopes: int = 1, head: int = 9) -> Advanced:
    return Advanced(number, block(number), block(head), envelopes, 0)


def idle(number: int) -> Idle:
    return Idle(block(number), block(number))


class Pauses(StopRequest):
    """Notes the pauses instead of sleeping."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)


def script(*outcomes: StepResult | Exception) -> Callable[[], StepResult]:
    remaining = iter(outcomes)

    def take_step() -> StepResult:
        outcome = next(remaining)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return take_step


class Silence:
    def succeeded(self, result: StepResult) -> None:
        pass

    def failed(self, error: RetryableChainError) -> None:
        pass


def test_run__work_to_do__pauses_only_when_idle() -> None:
    pauses = Pauses()
    outcomes = (advanced(1), RolledBack(1, 1, block(0), 2), advanced(1), idle(1), advanced(2))

    run(script(*outcomes), 0.25, Goal(until_block=2), pauses, Silence())

    assert pauses.seconds == [0.25]


def test_run__until_idle__ends_at_the_first_idle_step() -> None:
    run(script(advanced(1), idle(1)), 0.25, Goal(until_idle=True), Pauses(), Silence())


def test_run__retryable_errors__backs_off_up_to_the_limit_and_starts_anew() -> None:
    pauses = Pauses()
    outcomes = (*[DEAD] * 6, advanced(1), DEAD, idle(1))

    run(script(*outcomes), 0.25, Goal(until_idle=True), pauses, Silence())

    assert pauses.seconds == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 0.25]


def test_run__fatal_error__ends_the_loop() -> None:
    with pytest.raises(ReorgTooDeep):
        run(script(ReorgTooDeep("chain", "a", "b")), 0.25, Goal(), Pauses(), Silence())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run__signal__ends_after_the_step(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    stop = StopRequest()
    finished = []

    def take_step() -> StepResult:
        signal.raise_signal(number)
        finished.append(True)
        return idle(1)

    try:
        stop.listen()
        run(take_step, 60.0, Goal(), stop, Silence())
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

    assert finished == [True]


def test_narrator__error_that_stays__is_said_once_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="chainkit_indexer")
    narrator = Narrator(progress_bar=False)
    for _ in range(3):
        narrator.failed(DEAD)
    narrator.succeeded(advanced(3, envelopes=0))
    narrator.succeeded(advanced(4, envelopes=0))
    narrator.succeeded(advanced(5))

    assert [record.getMessage() for record in caplog.records] == [
        "retrying: http://node: expected an answer, got connection refused",
        "following again at block 3 0x03030303…",
        "block 5 0x05050505…: 1 envelopes, 0 quarantined",
    ]


def test_narrator__terminal__shows_a_bar_instead_of_lines(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chainkit_indexer")
    narrator = Narrator(progress_bar=True)
    for number in (1, 2, 3):
        narrator.succeeded(advanced(number, head=3))
    narrator.succeeded(advanced(4, head=4))

    assert "catching up" in capsys.readouterr().err
    assert [record.getMessage() for record in caplog.records] == [
        "block 4 0x04040404…: 1 envelopes, 0 quarantined"
    ]
