import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import usage
from benchmarks.index import meter
from benchmarks.index.__main__ import BENCHMARK
from benchmarks.index.bench import Result
from benchmarks.index.chain import LONG, USUAL
from benchmarks.index.figures import (
    DATABASES,
    ROWS,
    WAYS,
    flat_figures,
    following_figures,
    index_figures,
    row_figures,
)
from benchmarks.index.following import Followed, Latency, latencies
from benchmarks.index.job import Cost, Job, Measured, Stretch
from benchmarks.index.payloads import PAYLOAD_BYTES, message_calls
from chainkit.contracts.interface import shipped_interface
from chainkit.protocol.envelope import quarantine_reason
from chainkit.types import message_sent

EVENTS = 50_000
SECONDS = dict(zip(ROWS, (0.5, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 20.0), strict=True))
MACHINE = {"cpu": "A CPU", "cores": 2, "memory_gib": 23, "system": "Linux 6", "python": "3.11.7"}


def measured(seconds: float, peak: float = 100.0) -> Measured:
    cost = Cost(EVENTS, seconds, 2 * seconds)
    return Measured(cost, peak, cost, replace(cost, seconds=3 * seconds))


def figures(*, is_long: bool = False) -> dict[str, Any]:
    rows = {row: row_figures([Result(measured(SECONDS[row]), 0.1)]) for row in ROWS}
    following = {
        database: {
            way: following_figures(Followed(Latency(10, 20, 30 + index), 240, 0.5 + index, 1280, 0))
            for way in WAYS
        }
        for index, database in enumerate(DATABASES)
    }
    flat = flat_figures(measured(1.25)) | {"chain": LONG.figures()} if is_long else None
    about = {"chain": USUAL.figures(), "rounds": 3, "machine": MACHINE, "flat": flat}
    return index_figures(rows, following, about)


def test_make_messages__any__payloads_are_served_and_of_the_size() -> None:
    calls = message_calls(50)

    assert len(set(calls)) == 50
    for number, call in enumerate(calls, 1):
        arguments = shipped_interface("GroupMessages").arguments("addMessage", call)
        event = message_sent(arguments["groupId"], arguments["message"], number)
        assert len(event.payload) == PAYLOAD_BYTES == 300
        assert quarantine_reason(event) is None


def test_make_messages__twice__are_the_same() -> None:
    assert message_calls(3) == message_calls(3)


def test_send_job__read_again__is_the_same() -> None:
    job = Job("floor", "http://localhost:1", "record.json", "x.db", Stretch(1, 9, 90), "ws://x")
    assert Job.from_line(job.to_line()) == job
    assert job.to_line().count("\n") == 1


def test_send_measured__read_again__is_the_same() -> None:
    assert Measured.from_line(measured(1.5).to_line()) == measured(1.5)


def test_measure__pages__first_and_last_part_stand_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 1.0, 10.0, 14.0))
    monkeypatch.setattr(meter.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(meter, "own_cpu_seconds", lambda: 0.0)
    watch = meter.Meter(3 * meter.EDGE_EVENTS)

    for _ in range(6):
        watch.count(meter.EDGE_EVENTS // 2)
    found = watch.finish()

    assert found.total == Cost(3 * meter.EDGE_EVENTS, 14.0, 0.0)
    assert found.first == Cost(meter.EDGE_EVENTS, 1.0, 0.0)
    assert found.last == Cost(meter.EDGE_EVENTS, 4.0, 0.0)


def test_measure__one_page_of_everything__both_parts_are_the_whole() -> None:
    watch = meter.Meter(100)

    watch.count(100)
    found = watch.finish()

    assert found.first.events == found.last.events == found.total.events == 100


def test_use__this_process__has_used_something() -> None:
    before = usage.own_cpu_seconds()
    while usage.own_cpu_seconds() == before:
        sum(range(1000))
    assert usage.own_peak_mebibytes() > 1


def test_use__a_child_that_ended_and_was_not_asked_for__uses_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert usage.own_peak_mebibytes() > 1

    child.wait()


def test_compare__steps_with_blocks__a_page_commits_all_blocks_up_to_its_last() -> None:
    there = {number: float(number) for number in range(1, 101)}
    steps = [
        {"kind": "Idle", "number": 100, "at": 0.0},
        {"kind": "Advanced", "number": 2, "at": 2.5},
        *({"kind": "Advanced", "number": n, "at": n + 0.01} for n in range(3, 100)),
        {"kind": "Advanced", "number": 100, "at": 100.2},
    ]

    latency = latencies(there, steps)

    assert latency.p50 == pytest.approx(10)
    assert latency.p95 == pytest.approx(10)
    assert latency.p99 == pytest.approx(500)


def test_summarize__several_rounds__fastest_speed_and_most_memory() -> None:
    rounds = [Result(measured(2.0, 90.0), 0.1), Result(measured(1.0, 80.0), 0.2)]

    found = row_figures(rounds)

    assert found["events_per_s"] == 50_000
    assert found["cpu_us_per_event"] == 40
    assert found["server_cpu_us_per_event"] == 4
    assert found["peak_memory_mib"] == 90
    assert found["rounds_events_per_s"] == [25_000, 50_000]


def test_summarize__all__has_what_the_targets_name() -> None:
    found = figures()

    assert found["floor_events_per_s"] == 100_000
    assert found["unsigned_events_per_s"] == 50_000
    assert found["signed_sqlite_events_per_s"] == 40_000
    assert found["signed_postgres_events_per_s"] == 33_330
    assert found["tutorial_events_per_s"] == 2_500
    assert found["peak_memory_mib"] == 100
    assert (found["follow_p99_ms"], found["reorg64_s"]) == (31, 1.5)
    assert found["ratios"]["signed_sqlite_to_floor"] == 0.4
    assert found["ratios"]["signed_sqlite_to_tutorial"] == 16


@pytest.mark.parametrize("is_long", [False, True])
def test_show__any__fits_a_terminal(is_long: bool) -> None:
    shown = BENCHMARK.tables(figures(is_long=is_long)).splitlines()

    assert max(len(line) for line in shown) <= 100
    assert any("1,000" in line or "50,000" in line for line in shown)
    assert any(line.startswith("the last 50,000") for line in shown) is is_long
    assert any(line.endswith("  missed") for line in shown)


@pytest.mark.parametrize("is_long", [False, True])
def test_write_docs__any__names_the_machine_and_all_figures(is_long: bool) -> None:
    text = BENCHMARK.section(figures(is_long=is_long))

    assert "A CPU, 2 cores, 23 GiB" in text
    assert "python 3.11.7" in text
    for speed in ("100,000", "50,000", "40,000", "33,330", "2,500"):
        assert f"| {speed} |" in text
    assert ("## A long chain" in text) is is_long
    assert "| ours, signed, SQLite: of floor | at least 35% | 40% | reached |" in text
    assert "| ours, signed, PostgreSQL: of floor | at least 35% | 33.33% | missed |" in text
    assert all(len(line) <= 100 for line in text.splitlines() if line[:1] not in "|-")


def test_write_docs__same_figures__are_the_same_bytes() -> None:
    page, picture = BENCHMARK.documents(figures()).items()

    assert (page[0].name, picture[0].name) == ("benchmarks.md", "benchmarks-index.svg")
    ElementTree.fromstring(picture[1])
    assert "40,000" in picture[1]
    assert BENCHMARK.documents(figures()) == dict((page, picture))
