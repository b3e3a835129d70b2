"""Forwards requests that write to the process that writes, and returns its answers unchanged."""

from __future__ import annotations

import logging
from typing import Any, Final

import grpc

from chainkit.nodes.channel import connect, wait_until_connected
from chainkit.nodes.outcomes import NodeUnreached, status_details
from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES, QUERY_TOPIC_HEADS, SUBMIT_REPORT
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady, PassedOn
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.publishing import counted_publish

_SECONDS: Final = 30.0
_MOST_RECONNECT_MS: Final = 1000


class Forwarder:
    """A connection to the process that originates; made and used on the event loop's thread."""

    def __init__(self, url: str, metrics: NodeMetrics) -> None:
        """Take ``http://host:port`` or ``https://host:port``. Raises ConfigurationError."""
        self._url = url
        self._metrics = metrics
        self._channel = connect("--writer", url, _MOST_RECONNECT_MS)
        self._publish: Any = self._channel.unary_unary(PUBLISH_PAYER_ENVELOPES)
        self._report: Any = self._channel.unary_unary(SUBMIT_REPORT)
        self._heads: Any = self._channel.unary_unary(QUERY_TOPIC_HEADS)
        self._is_lost = False

    async def look(self) -> None:
        """Log where the writer is not reached: a wrong URL is known before a payer comes."""
        try:
            await wait_until_connected("--writer", self._url, self._channel)
        except NodeUnreached as error:
            self._lost(f"{error.expected}, got {error.got}")

    async def publish_payer_envelopes(self, data: bytes) -> bytes:
        """Return the writer's answer. Raises its refusal, or NotReady where it does not answer."""
        with counted_publish(self._metrics):
            return await self._passed_on(self._publish, data, "publish")

    async def submit_misbehavior_report(self, data: bytes) -> bytes:
        """Return the writer's answer. Raises as ``publish_payer_envelopes``."""
        return await self._passed_on(self._report, data, "misbehavior report")

    async def query_topic_heads(self, data: bytes) -> bytes:
        """Return the writer's answer. Raises as ``publish_payer_envelopes``."""
        return await self._passed_on(self._heads, data, "topic heads")

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()

    async def _passed_on(self, method: Any, data: bytes, subject: str) -> bytes:
        try:
            answer: bytes = await method(data, timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise self._refusal(error, subject) from error
        self._answered()
        return answer

    def _refusal(self, error: grpc.aio.AioRpcError, subject: str) -> PassedOn | NotReady:
        words = error.details() or error.code().name
        details = status_details(error)
        if details is not None:
            self._answered()
            return PassedOn(error.code(), words, details)
        # gRPC's own words about a connection name the writer's address, which no caller may see.
        self._lost(words)
        return NotReady(subject, "an answer of the process that originates", "none so far")

    def _answered(self) -> None:
        if self._is_lost:
            self._is_lost = False
            log_event(LogEvent("writer_answers", "the process that originates answers again"))

    def _lost(self, words: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            text = f"the process that originates does not answer: {words}"
            log_event(LogEvent("writer_unavailable", text, level=logging.WARNING))
