"""MisbehaviorApi: reports that clients submit, and all that the node hosts (XIP-49 §3.2.8)."""

from __future__ import annotations

import time
from collections.abc import Callable

from chainkit.protocol.proto import message_api_pb2
from chainkit.service.allowance import Buckets
from chainkit.service.grpc_methods import Caller, Unary
from chainkit_node.live.handover import Handover
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from chainkit_node.reporting.metrics import ReportMetrics
from chainkit_node.reporting.reader import ReportReader
from chainkit_node.reporting.refusals import (
    InvalidReport,
    LargeReport,
    Reason,
    TooOften,
)
from chainkit_node.reporting.writer import ReportWriter
from chainkit_node.serving import requests
from chainkit_node.storage.reports import StoredReport

_SUBJECT = "misbehavior report"
_SECONDS_PER_MINUTE = 60


class MisbehaviorApi:
    """Answers from the database, and hands on what is submitted; on the event loop's thread."""

    def __init__(
        self,
        reader: ReportReader,
        submit: Unary,
        rate: ReportRate,
        metrics: ReportMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the stored reports, the submit method, its rate by address, and the metrics.

        The clock is in seconds, and only grows.
        """
        self._reader = reader
        self._submit = submit
        self._rate = rate
        self._metrics = metrics
        self._clock = clock
        self._buckets = Buckets(rate.per_minute / _SECONDS_PER_MINUTE, rate.per_minute)

    async def submit_misbehavior_report(self, data: bytes, caller: Caller) -> bytes:
        """Answer, without content, once the report is stored or was there before."""
        now = self._clock()
        if wait := self._buckets.seconds_to_wait(caller.address, now):
            self._metrics.refused(Reason.RATE)
            most = f"at most {self._rate.per_minute} a minute from one address"
            raise TooOften(_SUBJECT, most, f"more; try again in {wait:.1f} s")
        self._buckets.take(caller.address, now)
        return await self._submit(data)

    async def query_misbehavior_reports(self, data: bytes) -> bytes:
        """Answer a page: the first reports after a server time, in the order of their times.

        The last one's time asks for the next page; a page without reports is the end so far.
        """
        request = requests.parsed(message_api_pb2.QueryMisbehaviorReportsRequest, data)
        found = await self._reader.page_after(request.after_ns)
        answer = message_api_pb2.QueryMisbehaviorReportsResponse(reports=map(_written, found))
        return answer.SerializeToString()


class SubmitReportHandler:
    """Hands clients' reports to the writer, in the process that stores reports."""

    def __init__(
        self, writer: ReportWriter, handover: Handover, bounds: ReportBounds, metrics: ReportMetrics
    ) -> None:
        """Take the writer, the handover of its answers, the bounds, and the metrics."""
        self._writer = writer
        self._handover = handover
        self._bounds = bounds
        self._metrics = metrics

    async def submit_misbehavior_report(self, data: bytes) -> bytes:
        """Answer a SubmitMisbehaviorReportRequest once its report is stored."""
        try:
            report = self._report(data)
        except InvalidReport as error:
            self._metrics.refused(error.reason)
            raise
        await self._handover.wait(self._writer.submit_for_client(report))
        return message_api_pb2.SubmitMisbehaviorReportResponse().SerializeToString()

    def _report(self, data: bytes) -> bytes:
        # Checked before parsing, which takes the event loop's time.
        if len(data) > self._bounds.report_bytes:
            expected = f"at most {self._bounds.report_bytes} bytes"
            raise LargeReport(_SUBJECT, expected, f"{len(data)} bytes")
        request = requests.parsed(message_api_pb2.SubmitMisbehaviorReportRequest, data)
        if not request.HasField("report"):
            raise InvalidReport(_SUBJECT, "a report", "none")
        # The node signs the fields that it knows, and no unknown field beside them.
        request.report.DiscardUnknownFields()
        return request.report.SerializeToString()


def _written(row: StoredReport) -> message_api_pb2.MisbehaviorReport:
    report = message_api_pb2.MisbehaviorReport(
        server_time_ns=row.server_time_ns, unsigned_misbehavior_report=row.report
    )
    report.signature.bytes = row.signature
    return report
