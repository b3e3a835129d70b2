"""The streams: SubscribeEnvelopes (XIP-49 §3.2.3) and SubscribeTopics of today's schema."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.stored_envelopes import written_envelopes, written_topic_envelopes
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.hub import Hub
from chainkit_node.live.stream import Stream, StreamStatus
from chainkit_node.serving import requests
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Page, Selection

_EMPTY_FRAME: Final = b""
"""A response without envelopes: the first frame, and the sign of life while there is no news."""

_STATUS_FRAMES: Final = {
    status: message_api_pb2.SubscribeTopicsResponse(
        status_update=message_api_pb2.SubscribeTopicsResponse.StatusUpdate(
            status=f"SUBSCRIPTION_STATUS_{status.name}"
        )
    ).SerializeToString()
    for status in StreamStatus
}


class Subscriber:
    """Opens streams on the log and the hub."""

    def __init__(
        self, log: EnvelopeLog, hub: Hub, limits: ServingLimits, metrics: NodeMetrics
    ) -> None:
        """Take log and hub, how much one request may ask for, and the metrics."""
        self._log = log
        self._hub = hub
        self._limits = limits
        self._metrics = metrics
        metrics.counts_streams(hub.__len__)

    async def subscribe_envelopes(self, data: bytes) -> AsyncIterator[bytes]:
        """Stream what a query selects; a frame without envelopes comes first, and while idle."""
        selections = await requests.off_loop(data, self._query, self._log.in_thread)
        stream = self._stream(selections)
        async for batch in self._counted("SubscribeEnvelopes", stream):
            if isinstance(batch, StreamStatus):
                yield _EMPTY_FRAME
            else:
                yield written_envelopes(row.envelope for row in batch)

    async def subscribe_topics(self, data: bytes) -> AsyncIterator[bytes]:
        """Stream topics, each behind its own cursor; the status comes in frames of its own.

        After a reorg the stream goes on: today's clients, who call this, would be away for a minute
        (ADR 47).
        """
        selections = await requests.off_loop(data, self._filters, self._log.in_thread)
        stream = self._stream(selections, goes_back=True)
        async for batch in self._counted("SubscribeTopics", stream):
            if isinstance(batch, StreamStatus):
                yield _STATUS_FRAMES[batch]
            else:
                yield written_topic_envelopes(row.envelope for row in batch)

    def _query(self, data: bytes) -> Sequence[Selection]:
        request = requests.parsed(message_api_pb2.SubscribeEnvelopesRequest, data)
        return [requests.selection(request.query, self._limits)]

    def _filters(self, data: bytes) -> Sequence[Selection]:
        kind, most = message_api_pb2.SubscribeTopicsRequest, requests.MOST_ENTRIES_OF_CURSORS
        request = requests.parsed(kind, data, most)
        return requests.topic_selections(request, self._limits)

    async def _counted(
        self, method: str, stream: Stream
    ) -> AsyncIterator[Sequence[StoredEnvelope] | StreamStatus]:
        starts = 0
        async for batch in stream.batches():
            if batch is StreamStatus.STARTED:
                starts += 1
                if starts > 1:
                    self._metrics.fell_behind()
            elif not isinstance(batch, StreamStatus):
                self._metrics.sent(method, len(batch))
            yield batch

    def _stream(self, selections: Sequence[Selection], *, goes_back: bool = False) -> Stream:
        async def read(selection: Selection, limit: int) -> Page:
            return await self._log.read_page(
                selection, limit, limits.frame_bytes, holds_back=goes_back
            )

        limits = self._limits
        return Stream(
            *(self._hub, read, selections, limits.page, limits.heartbeat_seconds),
            goes_back=goes_back,
        )
