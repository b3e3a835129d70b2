from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chainkit.chain import Endpoint, EndpointPool, NoEndpointAvailable
from chainkit.chain.heads import HeadStatistics, HeadWatcher, SubscriptionState
from chainkit.errors import EndpointUnavailable, InconsistentAnswer, ReorgTooDeep
from chainkit.service.log_lines import LogEvent, configure_logging, log_event, without_secrets
from chainkit_indexer.monitoring.narration import (
    Narrator,
    describe,
    event_of_result,
    narrate_start,
)
from chainkit_indexer.monitoring.web_socket import WebSocketNarrator
from chainkit_indexer.types import StepResult
from support.indexer.loop_results import Clock, advanced, idle, logging_restored, rolled_back
from support.project import ROOT

DEAD = EndpointUnavailable("http://node", "an answer", "connection refused")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def narrator(clock: Clock, caplog: pytest.LogCaptureFixture) -> Narrator:
    caplog.set_level(logging.INFO, logger="chainkit")
    return Narrator(clock=clock)


@pytest.fixture
def loggers() -> Iterator[None]:
    with logging_restored():
        yield


def events(caplog: pytest.LogCaptureFixture) -> list[LogEvent]:
    return [record.__dict__["event"] for record in caplog.records]


def texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_start__endpoint_that_rests__is_warned_of_by_name_and_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = EndpointPool([Endpoint.connect("http://good"), Endpoint.connect("http://typo/KEY")])
    narrate_start(pool.statistics())
    before = texts(caplog)

    pool.failed(pool.endpoints[1], DEAD)
    narrate_start(pool.statistics())

    assert before == []
    assert texts(caplog) == [
        "starting without http://typo: endpoint_unavailable; it is asked again later"
    ]
    assert caplog.records[0].levelname == "WARNING"


def test_narrator__error_that_stays__is_said_once_and_so_is_its_end(
    narrator: Narrator, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        narrator.failed(DEAD)
    narrator.succeeded(advanced(3, envelopes=0), 0.1)
    narrator.succeeded(advanced(4, envelopes=0), 0.1)
    narrator.succeeded(advanced(5), 0.1)

    assert texts(caplog) == [
        "retrying: http://node: expected an answer, got connection refused",
        "following again at block 3 0x03030303…",
        "block 5 0x05050505…: 1 envelopes, 0 quarantined",
    ]


def test_narrator__endpoints_rest_after_an_error__says_the_error_alone(
    narrator: Narrator, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (5.0, 4.9):
        narrator.failed(DEAD)
        narrator.failed(NoEndpointAvailable("http://node", "one", f"none for {seconds} s"))

    assert texts(caplog) == ["retrying: http://node: expected an answer, got connection refused"]


def test_narrator__following__says_once_that_the_head_was_reached(
    narrator: Narrator, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        narrator.succeeded(advanced(number, envelopes=number - 1), 0.1)
        narrator.succeeded(idle(number), 0.1)
    narrator.succeeded(rolled_back(0), 0.1)
    narrator.succeeded(idle(0), 0.1)

    assert [event.name for event in events(caplog)] == [
        "idle",
        "advanced",
        "advanced",
        "rolled_back",
        "idle",
    ]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (advanced(40, from_block=1), "blocks 1 to 40 0x28282828…: 1 envelopes, 0 quarantined"),
        (idle(40), "idle at the head 40 0x28282828…"),
        (
            idle(40, head=50),
            "idle at the final block 40 0x28282828…, below the head 50 0x32323232…",
        ),
        (idle(40, head=39), "waiting: head 39 0x27272727… is below the cursor 40 0x28282828…"),
        (rolled_back(37), "reorg 1: 3 blocks taken back to 37 0x25252525…, 22 payloads retracted"),
    ],
)
def test_describe__each_result__is_one_sentence(result: StepResult, expected: str) -> None:
    assert describe(result) == expected


def test_narrator__catching_up_without_terminal__tells_pace_and_end(
    narrator: Narrator, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100, 2501, 100):
        clock.seconds += 1
        narrator.succeeded(advanced(number, 2500, 2000, from_block=number - 99), 1.0)
    narrator.succeeded(idle(2500), 0.1)

    assert texts(caplog) == [
        "catching up: block 100 of 2500",
        "catching up: block 1100 of 2500, 100 blocks/s, 2,000 events/s, 14 seconds left",
        "catching up: block 2100 of 2500, 100 blocks/s, 2,000 events/s, 4 seconds left",
        "caught up: blocks 1 to 2500 0xc4c4c4c4…: 50000 envelopes, 0 quarantined, in 25 seconds",
        "idle at the head 2500 0xc4c4c4c4…",
    ]
    pace = events(caplog)[1].fields
    assert (pace["blocks_per_second"], pace["events_per_second"]) == (100.0, 2000.0)
    assert pace["remaining_seconds"] == 14


def test_narrator__final_blocks_only__catches_up_with_the_final_block(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chainkit")
    narrator = Narrator(serves_final_only=True, clock=clock)

    narrator.succeeded(advanced(500, head=1000, final_block=520), 0.1)

    assert [event.name for event in events(caplog)] == ["advanced"]


def test_narrator__error_while_catching_up__goes_on_with_the_pace(
    narrator: Narrator, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    narrator.succeeded(advanced(100, 2500, from_block=1), 1.0)
    narrator.failed(DEAD)
    clock.seconds += 20
    narrator.succeeded(advanced(300, 2500, from_block=101), 1.0)

    names = [event.name for event in events(caplog)]
    assert names == ["catching_up", "retrying", "recovered", "catching_up"]
    assert "14 blocks/s" in texts(caplog)[3]
    assert "3 minutes left" in texts(caplog)[3]


def test_narrator__error_that_ends_at_the_head__says_that_it_is_over(
    narrator: Narrator, caplog: pytest.LogCaptureFixture
) -> None:
    narrator.failed(DEAD)
    narrator.succeeded(idle(3), 0.1)

    assert [event.name for event in events(caplog)] == ["retrying", "recovered", "idle"]


class Subscription(HeadWatcher):
    """Its state is set by hand."""

    def __init__(self) -> None:
        super().__init__("ws://node.test/key", 1.0)
        self.state = SubscriptionState.CONNECTING

    def statistics(self) -> HeadStatistics:
        return replace(super().statistics(), state=self.state, last_error="connection refused")


def test_web_socket_narrator__lost_and_found__says_each_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="chainkit")
    heads = Subscription()
    narrator = WebSocketNarrator(heads)
    for state in ("connecting", "waiting", "connecting", "waiting", "subscribed", "subscribed"):
        heads.state = SubscriptionState(state)
        narrator.look()

    assert texts(caplog) == [
        "WebSocket ws://node.test: connection refused; polling goes on",
        "WebSocket ws://node.test: subscribed again",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_narrator__terminal__shows_a_bar_with_rate_and_time_instead_of_lines(
    clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="chainkit")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    narrator = Narrator(progress_bar=True, clock=clock)
    for number in range(200, 1001, 200):
        clock.seconds += 2
        narrator.succeeded(advanced(number, 1000, 400, from_block=number - 199), 2.0)
    narrator.succeeded(advanced(1001), 0.1)

    assert "catching up" in terminal.getvalue()
    assert "100 blocks/s, 200 events/s, 2 seconds left" in terminal.getvalue()
    drawn = re.split(r"\r|\n|\x1b\[\?25[lh]", terminal.getvalue())
    assert max(map(len, drawn)) <= 80
    assert [event.name for event in events(caplog)] == ["caught_up", "advanced"]


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize(
    ("log_format", "erased"), [("text", "\r\x1b[2K"), ("json", "")], ids=["text", "json"]
)
def test_log__line_of_another_while_a_bar_is_drawn__does_not_stand_behind_it(
    monkeypatch: pytest.MonkeyPatch, log_format: str, erased: str
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    configure_logging(log_format)
    terminal.write("catching up  [###   ]")

    log_event(LogEvent("registry", "registry: 1 updates"))

    line = terminal.getvalue().removeprefix("catching up  [###   ]")
    assert line.startswith(erased + ("{" if log_format == "json" else "20"))
    assert line.endswith("\n")


@pytest.mark.usefixtures("loggers")
def test_log__json__is_one_typed_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("json")
    narrator = Narrator()
    narrator.succeeded(advanced(7, envelopes=3), 0.25)
    narrator.failed(InconsistentAnswer("logs at http://node", "all\nup to 9", "up to 8", "block 7"))
    narrator.stopped(ReorgTooDeep("chain", "a", "b"))

    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    assert first == {
        "level": "info",
        "event": "advanced",
        "message": "block 7 0x07070707…: 3 envelopes, 0 quarantined",
        "block": 7,
        "hash": "0x" + "07" * 32,
        "from_block": 7,
        "head": 7,
        "final_block": -1,
        "envelopes": 3,
        "quarantined": 0,
        "left_out": 0,
        "established": "receipts",
        "seconds": 0.25,
    }
    assert (second["event"], second["level"]) == ("retrying", "warning")
    assert (second["error"], second["place"]) == ("InconsistentAnswer", "block 7")
    assert (third["event"], third["level"], third["error"]) == ("stopped", "error", "ReorgTooDeep")


@pytest.mark.usefixtures("loggers")
def test_log__text__cannot_be_forged_by_an_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("text")

    Narrator().failed(EndpointUnavailable("node", "an answer", "x\n2026 INFO all is well\x1b[2J"))

    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ WARNING retrying: node: ", line)
    assert line.endswith("x\\n2026 INFO all is well\\x1b[2J")


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log__url_with_secrets__shows_the_host_alone(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(log_format)
    secret = "https://user:PASSWORD@rpc.example.org:8545/v3/PATHKEY?token=QUERYKEY"

    log_event(LogEvent("any", f"refused by {secret}", {"got": f"see '{secret}'"}))
    logging.getLogger("chainkit.chain").warning("again %s", secret)

    written = capsys.readouterr().err
    assert written.count("https://rpc.example.org:8545") == (3 if log_format == "json" else 2)
    assert not re.search("PASSWORD|PATHKEY|QUERYKEY|user", written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://node: expected an answer", "http://node: expected an answer"),
        ("wss://h/ws/KEY, then", "wss://h then"),
        ("postgresql+psycopg://u:p@db/x went away", "postgresql+psycopg://db went away"),
        ("database /var/lib/node.db", "database /var/lib/node.db"),
        ("https://[::1]:8545/KEY", "https://[::1]:8545"),
    ],
)
def test_without_secrets__text__keeps_what_is_none(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_readme__sample_of_the_log__has_the_levels_of_the_log() -> None:
    levels = {
        event_of_result(result).text.split()[0].rstrip("s"): event_of_result(result).level
        for result in (advanced(5), idle(5), rolled_back(2))
    }
    sample = re.findall(r"^\d{4}-\S+Z (\w+) +(\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)

    assert {word.rstrip("s") for _, word in sample} == levels.keys()
    for level, word in sample:
        assert level == logging.getLevelName(levels[word.rstrip("s")]), word
