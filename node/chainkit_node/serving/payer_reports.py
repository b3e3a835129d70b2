"""QueryPayerReports: the stored payer reports, for other nodes, payers and auditors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection

from chainkit.protocol.proto import node_api_pb2
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.serving import requests
from chainkit_node.settings import ServingLimits
from chainkit_node.storage.payer_reports import as_message, read_reports_behind

MOST_BYTES: Final = 4 << 20
"""Bytes of one answer, but for a single larger report."""


class PayerReportsHandler:
    """Answers from the database, in threads that may wait for it."""

    def __init__(self, log: EnvelopeLog, limits: ServingLimits) -> None:
        """Take the log, whose threads are used, and how much one request may ask for."""
        self._log = log
        self._limits = limits

    async def query_payer_reports(self, data: bytes) -> bytes:
        """Answer the first reports of each query, in the request's order.

        Raises InvalidRequest.
        """
        request = requests.parsed(node_api_pb2.QueryPayerReportsRequest, data)
        requests.check_count("queries", len(request.queries), self._limits.cursor)
        return await self._log.in_thread(lambda: self._answer(request))

    def _answer(self, request: node_api_pb2.QueryPayerReportsRequest) -> bytes:
        answer = node_api_pb2.QueryPayerReportsResponse()
        size = 0
        with self._log.reading() as connection:
            for query in request.queries:
                for message in self._behind(connection, query):
                    size += message.ByteSize()
                    if answer.reports and size > MOST_BYTES:
                        return answer.SerializeToString()
                    answer.reports.append(message)
                    if len(answer.reports) == self._limits.payer_reports:
                        return answer.SerializeToString()
        return answer.SerializeToString()

    def _behind(
        self, connection: Connection, query: node_api_pb2.PayerReportQuery
    ) -> Iterator[node_api_pb2.SignedPayerReport]:
        """Yield the reports of one query; one is in memory at a time."""
        after = min(query.after_sequence_id, requests.LARGEST_ID)
        while rows := read_reports_behind(connection, query.originator_node_id, after, 1):
            yield as_message(connection, rows[0])
            after = rows[0].last_id
