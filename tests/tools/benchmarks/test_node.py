"""The node's benchmark: rounds of two builds, the two loads, and the page."""

import asyncio
import struct
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.node import builds
from benchmarks.node.__main__ import BENCHMARK
from benchmarks.node.beside import Beside, Idle
from benchmarks.node.compared import compared, targets
from benchmarks.node.h2load import h2load_program, read_log
from benchmarks.node.page import ROWS
from benchmarks.node.replay import call_each, frame, headers
from benchmarks.node.rounds import Rounds, Row, in_turn
from chainkit.errors import ConfigurationError, MalformedAnswer

METHOD = "/a.service/Method"


def figures(per_second: float = 2000.0) -> dict[str, Any]:
    """Two rounds in which the former build published 1,000 a second, and one of them was slow."""
    calls = [{"per_s": per_second, "p99_ms": 30.0, "cpu_us": 300.0}] * 2
    before = [{"per_s": 1000.0, "p99_ms": 60.0, "cpu_us": 600.0}] * 2
    slow = [before[0], {"per_s": 100.0, "p99_ms": 600.0, "cpu_us": 700.0}]
    streams = [{"p50_ms": 4.0, "p99_ms": 9.0}] * 2
    idle = Idle((2.5, 5.0), (150.0, 120.0), (90.0, 80.0))
    found = Beside(
        *(idle, idle, Rounds(calls, slow), Rounds(calls, before)),
        *(Rounds(streams, streams), Rounds(calls, before)),
    )
    machine = {"cpu": "A CPU", "cores": 2, "python": "3.11.7", "grpcio": "1"}
    sizes = {"rounds": 2, "publishes": 6000, "gateway_publishes": 1500, "idle_seconds": 30.0}
    rest: dict[str, Any] = {"is_quick": False, "load_before": 0.1}
    return (
        dict.fromkeys(ROWS, 1234.0)
        | compared(found)
        | rest
        | {
            "machine": machine,
            "sizes": sizes,
        }
    )


def test_compared__a_busy_round__changes_no_other_rounds_ratio() -> None:
    found = figures()

    assert found["reader_vs_before"] == 2.0
    assert found["idle_vs_before"] == 0.5
    part = found["compared"]["publish_vs_before"]
    assert (part["least"], part["greatest"], part["now"], part["before"]) == (2, 20, 2000, 550)


@pytest.mark.parametrize(("per_second", "verdict"), [(2000.0, "reached"), (1990.0, "missed")])
def test_targets__publishes_of_both_builds__are_judged_by_their_ratio(
    per_second: float, verdict: str
) -> None:
    found = figures(per_second) | {"publish_vs_before": per_second / 1000}

    [target] = [each for each in targets(found) if each.what.startswith("publish: ")]

    assert target.verdict == verdict


def test_in_turn__two_rounds__begin_with_another_build_each() -> None:
    asked = []

    async def measure(side: str, number: int) -> Row:
        asked.append(f"{side} {number}")
        return {"per_s": float(number + (side == "before"))}

    found = asyncio.run(in_turn(2, measure, "now", "before"))

    assert asked == ["now 0", "before 0", "before 1", "now 1"]
    assert ([row["per_s"] for row in found.now], found.middle("per_s")) == ([0, 1], (0.5, 1.5))


def test_read_log__calls_side_by_side__last_from_the_first_begin_to_the_last_end() -> None:
    rate = read_log("1000000\t200\t500000\n1100000\t200\t900000\n", 2)

    assert (rate.count, rate.seconds, rate.percentile(0.99)) == (2, 1.0, 0.9)


@pytest.mark.parametrize("log", ["1000000\t200\t500000\n", "1\t200\t1\n2\t503\t1\n2\t-1\t0\n"])
def test_read_log__calls_without_an_answer__are_no_figures(log: str) -> None:
    with pytest.raises(MalformedAnswer, match="h2load: expected 2 answers, got 1"):
        read_log(log, 2)


def test_h2load_program__not_installed__says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ConfigurationError, match="apt install nghttp2-client"):
        h2load_program()


def test_former_build__commit_that_git_does_not_have__says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builds, "_FORMER", "0123456789" * 4)

    with pytest.raises(ConfigurationError, match="012345678901, in a whole clone"):
        builds.former_build()


def test_call_each__bodies__arrive_once_each_and_whole() -> None:
    arrived = asyncio.run(_arrived([b"one", b"two", b"x" * 1000]))

    assert arrived == sorted([b"one", b"two", b"x" * 1000])


def test_headers__a_method__name_it_in_hpack() -> None:
    block = headers(METHOD)

    assert block[:2] == b"\x83\x86"
    assert b"\x04" + bytes([len(METHOD)]) + METHOD.encode() in block


async def _arrived(bodies: list[bytes]) -> list[bytes]:
    """Call a server that knows only frames, and return the messages that it got."""
    arrived: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(24)
        # A ping in the midst of a call, and an answer that comes in two pieces.
        writer.write(frame(4, 0, 0, b"") + frame(6, 0, 0, b"8 octets"))
        while head := await reader.read(9):
            length, kind = int.from_bytes(head[:3]), head[3]
            stream = int.from_bytes(head[5:])
            payload = await reader.readexactly(length)
            if kind == 0:
                arrived.append(payload[5:])
                assert struct.unpack(">BI", payload[:5]) == (0, len(payload) - 5)
                trailers = frame(1, 5, stream, b"\x88")
                writer.write(frame(1, 4, stream, b"\x88") + trailers[:4])
                await writer.drain()
                writer.write(trailers[4:])
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        rate = await call_each(port, METHOD, bodies, 10)
    assert rate.count == len(bodies)
    return sorted(arrived)


def test_write_docs__figures__name_both_builds_in_page_and_picture() -> None:
    page, picture = BENCHMARK.documents(figures()).items()

    assert (page[0].name, picture[0].name) == ("benchmarks.md", "benchmarks-node.svg")
    ElementTree.fromstring(picture[1])
    assert "gateway, before" in picture[1]
    assert BENCHMARK.documents(figures()) == dict((page, picture))
    text = BENCHMARK.section(figures())
    assert "| publishes a second, 100 callers | 550.0 | 2,000.0 | 20.0 | 2.0 to 20.0 |" in text
    assert all(len(line) <= 100 for line in text.splitlines() if line[:1] not in "|-")
