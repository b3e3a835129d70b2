"""MisbehaviorApi by its bytes: what it submits, pages of what is stored, and its rate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import misbehavior_digest
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import InvalidRequest
from chainkit.signatures import recover_public_key
from chainkit_node.live.handover import Handover
from chainkit_node.reporting.bounds import ReportRate
from chainkit_node.reporting.reader import ReportReader
from chainkit_node.reporting.refusals import InvalidReport, LargeReport, Reason, TooOften
from chainkit_node.serving.reports import MisbehaviorApi, SubmitReportHandler
from support.reporting import KEYS, OWN, Host, proof, slow

ANN, BEN = Caller("ipv4:192.0.2.1:1"), Caller("ipv4:192.0.2.2:1")
_Answer = TypeVar("_Answer")


class Served:
    """A host's methods, on an event loop."""

    def __init__(self, host: Host, rate: ReportRate, clock: Callable[[], float]) -> None:
        self.reader = ReportReader(host.store, host.bounds)
        handover = Handover(asyncio.get_running_loop())
        handler = SubmitReportHandler(host.writer, handover, host.bounds, host.metrics)
        self.api = MisbehaviorApi(
            self.reader, handler.submit_misbehavior_report, rate, host.metrics, clock
        )

    async def submit(self, report: bytes, caller: Caller = ANN) -> bytes:
        return await self.api.submit_misbehavior_report(request(report), caller)

    async def query(self, after_ns: int) -> list[message_api_pb2.MisbehaviorReport]:
        asked = message_api_pb2.QueryMisbehaviorReportsRequest(after_ns=after_ns)
        answer = await self.api.query_misbehavior_reports(asked.SerializeToString())
        assert len(answer) <= 25 << 20
        return list(message_api_pb2.QueryMisbehaviorReportsResponse.FromString(answer).reports)


def request(report: bytes) -> bytes:
    parsed = message_api_pb2.UnsignedMisbehaviorReport.FromString(report)
    return message_api_pb2.SubmitMisbehaviorReportRequest(report=parsed).SerializeToString()


def serving(
    host: Host,
    story: Callable[[Served], Awaitable[_Answer]],
    rate: ReportRate | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> _Answer:
    async def run() -> _Answer:
        served = Served(host, rate or ReportRate(0), clock)
        try:
            return await story(served)
        finally:
            served.reader.close()

    return asyncio.run(run())


@pytest.mark.conforms("N52")
def test_query__pages_after_the_last_ones_time__give_all_once_in_order_and_signed(
    host: Host,
) -> None:
    host.bounds = replace(host.bounds, page=2)
    reports = [slow(1), proof(5), slow(2), slow(3), proof(6)]

    async def story(served: Served) -> list[message_api_pb2.MisbehaviorReport]:
        for report in reports:
            assert await served.submit(report) == b""
        found: list[message_api_pb2.MisbehaviorReport] = []
        for expected in (2, 2, 1, 0):
            page = await served.query(found[-1].server_time_ns if found else 0)
            assert len(page) == expected
            found += page
        assert await served.query(2**64 - 1) == []
        return found

    found = serving(host, story)

    assert [each.unsigned_misbehavior_report for each in found] == reports
    times = [each.server_time_ns for each in found]
    assert times == sorted(set(times))
    for each in found:
        digest = misbehavior_digest(each.unsigned_misbehavior_report)
        assert recover_public_key(each.signature.bytes, digest) == KEYS[OWN].public_key


def test_query__largest_reports__come_one_by_one(host: Host) -> None:
    host.bounds = replace(host.bounds, page_bytes=1)

    async def story(served: Served) -> None:
        for number in range(3):
            await served.submit(slow(number))
        first = await served.query(0)
        second = await served.query(first[0].server_time_ns)
        assert [len(first), len(second)] == [1, 1]

    serving(host, story)


def test_submit__fields_that_nobody_knows__are_not_signed(host: Host) -> None:
    report = slow(1) + b"\xfa\x01\x03abc"

    serving(host, lambda served: served.submit(report))

    assert [row.report for row in host.rows()] == [slow(1)]


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"", InvalidReport, "expected a report, got none"),
        (b"\xff", InvalidRequest, "expected bytes of SubmitMisbehaviorReportRequest"),
        (b"\x0a\x00", InvalidReport, "expected a type from 1 to 8"),
        (bytes(10 << 20), LargeReport, "expected at most 8396800 bytes"),
    ],
    ids=["nothing", "other bytes", "empty report", "too large"],
)
def test_submit__bytes_that_are_no_report__are_refused(
    host: Host, data: bytes, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        serving(host, lambda served: served.api.submit_misbehavior_report(data, ANN))


@pytest.mark.conforms("N54")
def test_submit__above_the_rate_of_an_address__is_refused_for_that_address_alone(
    host: Host,
) -> None:
    now = [0.0]

    async def story(served: Served) -> None:
        for number in range(3):
            await served.submit(slow(number))
        with pytest.raises(TooOften, match=r"at most 3 a minute .* try again in 20\.0 s"):
            await served.submit(slow(3))
        await served.submit(slow(4), BEN)
        now[0] += 20
        await served.submit(slow(5))

    serving(host, story, ReportRate(3), lambda: now[0])

    assert len(host.rows()) == 5
    assert host.number("refused_total", reason=Reason.RATE) == 1
