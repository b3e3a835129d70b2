"""The gRPC handlers of PayerApi: one refused envelope refuses the whole request.

The payloads of one topic are published in the request's order: a commit may refer to a proposal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from chainkit.protocol.proto.payer_api_pb2 import (
    GetNodesResponse,
    PublishClientEnvelopesRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.service.grpc_methods import Caller
from chainkit.service.parsing import parse_request
from chainkit.service.refusals import InvalidRequest
from chainkit_gateway.clients import Clients
from chainkit_gateway.retention import RetentionPolicy
from chainkit_gateway.routing import route
from chainkit_gateway.types import NodeList, Publication, Published, Publishes

MOST_ENVELOPES: Final = 1000
"""Envelopes of one request."""

_MOST_ENTRIES: Final = 2 * MOST_ENVELOPES
"""Envelopes, and fields of later versions, that are parsed at all."""

CLIENT_SECONDS: Final = 120.0
"""How long a caller waits that names no deadline: today's clients hang up then without a word."""

_USED_SHARE: Final = 0.9
"""The part of a caller's time after which the gateway answers, so that the answer arrives."""


class PayerHandlers:
    """Answers known clients, within the clients' limits."""

    def __init__(
        self,
        nodes: NodeList,
        publisher: Publishes,
        clients: Clients,
        retention: RetentionPolicy,
    ) -> None:
        """Take the nodes that GetNodes answers, the publisher, clients' limits and retention."""
        self._nodes = nodes
        self._publisher = publisher
        self._clients = clients
        self._retention = retention

    async def get_nodes(self, data: bytes, caller: Caller) -> bytes:
        """Answer with the nodes' URLs by node id."""
        self._clients.take(self._clients.name(caller), 1, len(data))
        return GetNodesResponse(nodes=self._nodes.urls).SerializeToString()

    async def publish_client_envelopes(self, data: bytes, caller: Caller) -> bytes:
        """Publish all envelopes of a request; answer OriginatorEnvelopes in the same order."""
        client = self._clients.name(caller)
        request = parse_request(PublishClientEnvelopesRequest, data, _MOST_ENTRIES)
        count = len(request.envelopes)
        if count > MOST_ENVELOPES:
            raise InvalidRequest("envelopes", f"at most {MOST_ENVELOPES}", count)
        # An empty request costs as much as one envelope.
        self._clients.take(client, max(1, count), len(data))
        wish = request.retention_days if request.HasField("retention_days") else None
        publications = [self._kept(_routed(each, client), wish) for each in request.envelopes]
        seconds = CLIENT_SECONDS if caller.seconds is None else caller.seconds
        deadline = asyncio.get_running_loop().time() + _USED_SHARE * seconds
        answers = await self._in_order(publications, deadline)
        return Envelopes(envelopes=[each.envelope for each in answers]).SerializeToString()

    def _kept(self, publication: Publication, wish: int | None) -> Publication:
        """Return a publication with its days; the chain keeps its payloads for ever."""
        if publication.is_for_chain:
            return publication
        days = self._retention.days(publication.client, publication.kind, wish)
        return replace(publication, retention_days=days)

    async def _in_order(
        self, publications: Sequence[Publication], deadline: float
    ) -> list[Published]:
        """Publish topics side by side, and the payloads of a topic in the request's order."""
        topics: dict[bytes, list[Publication]] = {}
        for each in publications:
            topics.setdefault(each.topic, []).append(each)
        answers = await asyncio.gather(
            *(self._of_topic(each, deadline) for each in topics.values())
        )
        answers_of = dict(zip(topics, map(iter, answers), strict=True))
        return [next(answers_of[each.topic]) for each in publications]

    async def _of_topic(
        self, publications: Sequence[Publication], deadline: float
    ) -> Sequence[Published]:
        """Send each payload once the payload before it has its place; a refusal ends the topic."""
        place, answer = self._publisher.place, self._publisher.answer
        places = [await place(each, deadline) for each in publications]
        return await asyncio.gather(
            *(answer(*each, deadline) for each in zip(publications, places, strict=True))
        )


def _routed(client_envelope: bytes, client: str) -> Publication:
    try:
        return route(client_envelope, client)
    except PublishRefused as error:
        place = error.place or error.reason
        raise InvalidRequest(error.subject, error.expected, error.got, place) from error
