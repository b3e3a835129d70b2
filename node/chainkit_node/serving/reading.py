"""The methods that read: QueryEnvelopes, GetNewestEnvelope and GetInboxIds (XIP-49 §3.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chainkit.identity.identifiers import MemberKind
from chainkit.protocol.proto import (
    identity_associations_pb2,
    message_api_pb2,
    stored_envelopes_pb2,
)
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.types import TopicKind
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.serving import requests
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.settings import ServingLimits
from chainkit_node.types import Selection

_KINDS: Final = {
    identity_associations_pb2.IDENTIFIER_KIND_ETHEREUM: MemberKind.ETHEREUM,
    identity_associations_pb2.IDENTIFIER_KIND_PASSKEY: MemberKind.PASSKEY,
}
"""XIP-49's requests name no kind, and mean addresses."""


class Reader:
    """Answers from the log, in threads that may wait for a database."""

    def __init__(self, log: EnvelopeLog, limits: ServingLimits, metrics: NodeMetrics) -> None:
        """Take the log, how much one request may ask for, and the metrics."""
        self._log = log
        self._limits = limits
        self._metrics = metrics

    async def query_envelopes(self, data: bytes) -> bytes:
        """Answer a page: envelopes behind the cursor, by originator and sequence id.

        Messages by topics wait for what they name of the chain (ADR 55).
        ``limit`` 0, and more than a page, mean a page; of identity topics, 0 means all, because
        today's clients ask once for the whole history of an inbox.
        """
        asked, selection = await requests.off_loop(data, self._query, self._log.in_thread)
        limits = self._limits
        limit = min(asked or limits.page, limits.page)
        if asked == 0 and _is_of_identities(selection):
            limit = limits.identity_updates
        page = await self._log.read_page(selection, limit, limits.page_bytes, holds_back=True)
        self._metrics.sent("QueryEnvelopes", len(page.rows))
        return written_envelopes(row.envelope for row in page.rows)

    def _query(self, data: bytes) -> tuple[int, Selection]:
        """Return a query's limit, and what it selects."""
        request = requests.parsed(message_api_pb2.QueryEnvelopesRequest, data)
        return request.limit, requests.selection(request.query, self._limits)

    async def newest_envelope(self, data: bytes) -> bytes:
        """Answer the newest envelope of each topic, or an empty result, in the request's order."""
        topics = await requests.off_loop(data, self._topics, self._log.in_thread)
        found = await self._log.newest(topics, self._limits.page_bytes)
        self._metrics.sent("GetNewestEnvelope", len(found))
        answer = stored_envelopes_pb2.NewestEnvelopes()
        for topic in topics:
            row = found.get(topic)
            answer.results.add(envelope=None if row is None else row.envelope)
        return answer.SerializeToString()

    def _topics(self, data: bytes) -> Sequence[bytes]:
        request = requests.parsed(message_api_pb2.GetNewestEnvelopeRequest, data)
        return requests.topics_of(request, self._limits)

    async def inbox_ids(self, data: bytes) -> bytes:
        """Answer the inbox of each identifier, or none, in the request's order."""
        request = requests.parsed(message_api_pb2.GetInboxIdsRequest, data)
        requests.check_count("requests", len(request.requests), self._limits.identifiers)
        asked = [
            (each.identifier, _KINDS.get(each.identifier_kind, MemberKind.ETHEREUM))
            for each in request.requests
        ]
        found = await self._log.inbox_ids(asked)
        answer = message_api_pb2.GetInboxIdsResponse()
        for each, inbox_id in zip(request.requests, found, strict=True):
            answer.responses.add(
                identifier=each.identifier,
                inbox_id=inbox_id,
                identifier_kind=each.identifier_kind,
            )
        return answer.SerializeToString()


def _is_of_identities(selection: Selection) -> bool:
    topics = selection.topics
    return bool(topics) and all(map(TopicKind.IDENTITY_UPDATE.matches, topics))
