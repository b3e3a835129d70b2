"""The gRPC handlers of PayerApi: one refused envelope refuses the whole request."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.message import DecodeError

from chainkit.protocol.proto.payer_api_pb2 import (
    GetNodesResponse,
    PublishClientEnvelopesRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.service.grpc_server import Caller
from chainkit.service.refusals import InvalidRequest
from chainkit_gateway.clients import Clients
from chainkit_gateway.publishing import NodeList
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication, Publishes

MOST_ENVELOPES: Final = 1000
"""Envelopes of one request."""


class PayerHandlers:
    """Answers known clients, within the clients' limits."""

    def __init__(self, nodes: NodeList, publisher: Publishes, clients: Clients) -> None:
        """Take the nodes that GetNodes answers, the publisher, and the clients' limits."""
        self._nodes = nodes
        self._publisher = publisher
        self._clients = clients

    async def get_nodes(self, data: bytes, caller: Caller) -> bytes:
        """Answer with the nodes' URLs by node id."""
        self._clients.take(self._clients.name(caller), 1, len(data))
        return GetNodesResponse(nodes=self._nodes.urls).SerializeToString()

    async def publish_client_envelopes(self, data: bytes, caller: Caller) -> bytes:
        """Publish all envelopes of a request; answer OriginatorEnvelopes in the same order."""
        client = self._clients.name(caller)
        try:
            request = PublishClientEnvelopesRequest.FromString(data)
        except DecodeError as error:
            raise InvalidRequest("request", "a PublishClientEnvelopesRequest", error) from error
        count = len(request.envelopes)
        if count > MOST_ENVELOPES:
            raise InvalidRequest("envelopes", f"at most {MOST_ENVELOPES}", count)
        # An empty request costs as much as one envelope.
        self._clients.take(client, max(1, count), len(data))
        publications = [_routed(each, client) for each in request.envelopes]
        published = await asyncio.gather(*map(self._publisher.publish, publications))
        return Envelopes(envelopes=published).SerializeToString()


def _routed(client_envelope: bytes, client: str) -> Publication:
    try:
        return route(client_envelope, client)
    except PublishRefused as error:
        place = error.place or error.reason
        raise InvalidRequest(error.subject, error.expected, error.got, place) from error
