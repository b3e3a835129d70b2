"""Causes that last or flap for an hour: each writes few lines, and none hides another."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from chainkit.chain.heads import SubscriptionState
from chainkit.errors import InconsistentAnswer, StoreUnavailable
from chainkit.service.log_limits import kind_of
from chainkit.service.log_lines import LogEvent, configure_logging, log_event
from chainkit_indexer.monitoring.narration import Narrator
from chainkit_indexer.monitoring.web_socket import WebSocketNarrator
from chainkit_node.originating.clock_check import ClockCheck
from support.indexer.loop_results import (
    FIRST_TIMESTAMP,
    Clock,
    advanced,
    idle,
    logging_restored,
)

HOUR = 3600
MOST_LINES = 30


@pytest.fixture
def clock() -> Iterator[Clock]:
    """The seconds of the hour; each test sends the log to stderr, which pytest opens for it."""
    with logging_restored():
        yield Clock()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def lagging_endpoint() -> Callable[[int], None]:
    narrator = Narrator()

    def second(now: int) -> None:
        if now % 2:
            narrator.failed(InconsistentAnswer("http://node:8545", f"block {now}", f"{now - 9}"))
        else:
            narrator.succeeded(idle(now), 0.1)

    return second


def flapping_web_socket() -> Callable[[int], None]:
    state = SimpleNamespace(state=SubscriptionState.WAITING, last_error="")
    narrator = WebSocketNarrator(SimpleNamespace(name="ws://node:8546", statistics=lambda: state))  # type: ignore[arg-type]

    def second(now: int) -> None:
        states = (SubscriptionState.WAITING, SubscriptionState.SUBSCRIBED)
        state.state, state.last_error = states[now % 2], f"closed after {now} frames"
        narrator.look()

    return second


def full_disk() -> Callable[[int], None]:
    narrator = Narrator()

    def second(now: int) -> None:
        narrator.failed(StoreUnavailable("node.db", "a commit", f"{now % 7} bytes are free"))

    return second


def clock_that_is_moved_each_second() -> Callable[[int], None]:
    now_is = [0]
    check = ClockCheck(
        lambda: 0,
        clock=lambda: FIRST_TIMESTAMP + now_is[0] + 600 * (now_is[0] % 2),
        steady=lambda: now_is[0],
    )

    def second(now: int) -> None:
        now_is[0] = now
        check.succeeded(advanced(now), 0.0)

    return second


def words_of_a_stranger() -> Callable[[int], None]:
    chance = random.Random(0)

    def second(now: int) -> None:
        words = "".join(chance.choices("abcdefgh ", k=40))
        log_event(LogEvent("peer_stream_failed", f"no envelopes: {words}", level=logging.WARNING))

    return second


@pytest.mark.parametrize(
    "cause",
    [lagging_endpoint, flapping_web_socket, full_disk, clock_that_is_moved_each_second],
    ids=lambda cause: cause.__name__,
)
def test_log__cause_that_lasts_an_hour__writes_few_lines(
    cause: Callable[[], Callable[[int], None]],
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("json", clock)
    second = cause()
    for now in range(HOUR):
        clock.seconds += 1
        second(now)

    written = lines(capsys)
    assert 1 <= len(written) < MOST_LINES
    assert "repeats" not in written[0]


def test_log__strangers_words_differ_each_time__are_bounded_and_hide_no_other_event(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json", clock)
    second = words_of_a_stranger()
    for now in range(HOUR):
        clock.seconds += 1
        second(now)
    log_event(LogEvent("stopped", "stopped: the disk is full", level=logging.ERROR))

    written = lines(capsys)
    assert len(written) <= 30 + 60 + 1
    assert written[-1]["event"] == "stopped"


def test_log__payloads_of_each_block__are_all_written(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json", clock)
    narrator = Narrator()
    for number in range(100):
        narrator.succeeded(advanced(number), 0.1)

    assert [each["block"] for each in lines(capsys)] == list(range(100))


def test_log__kind_comes_back_after_its_pause__says_how_many_were_left_out(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("json", clock)
    for waited in (1, 1, 1, 1, 1, 600):
        clock.seconds += waited
        log_event(LogEvent("chain_failed", f"chain: retrying: block {clock.seconds}"))

    assert [each.get("repeats") for each in lines(capsys)] == [None, None, None, 2]


def test_kind_of__numbers_and_hashes__are_one_kind_and_names_are_not() -> None:
    lags = "http://a:8545: expected block 12, got 7 (0xab12)"

    assert kind_of(lags) == kind_of(lags.replace("12,", "9,").replace("ab12", "cd"))
    assert kind_of(lags) != kind_of(lags.replace("8545", "8546"))
    assert kind_of("node 100: 3 gaps") != kind_of("node 101: 3 gaps")
