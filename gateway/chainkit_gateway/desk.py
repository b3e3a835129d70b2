"""The methods of PayerApi: requests are taken apart, and refused as a whole where one part is."""

from __future__ import annotations

import asyncio
from typing import Final

from chainkit.protocol.proto.payer_api_pb2 import (
    GetNodesResponse,
    PublishClientEnvelopesRequest,
)
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.service.grpc_server import Caller
from chainkit.service.refusals import InvalidRequest
from chainkit_gateway.publishing import NodeList, Publisher
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication

MOST_ENVELOPES: Final = 1000
"""Envelopes of one request."""


class ClientDesk:
    """Answers clients."""

    def __init__(self, nodes: NodeList, publisher: Publisher) -> None:
        """Take the nodes that clients are told of, and who publishes."""
        self._nodes = nodes
        self._publisher = publisher

    async def get_nodes(self, data: bytes, caller: Caller) -> bytes:
        """Answer with the nodes' URLs by their ids."""
        return GetNodesResponse(nodes=self._nodes.urls).SerializeToString()

    async def publish_client_envelopes(self, data: bytes, caller: Caller) -> bytes:
        """Publish all envelopes of a request; answer with theirs, in the same order."""
        try:
            request = PublishClientEnvelopesRequest.FromString(data)
        except ValueError as error:
            raise InvalidRequest("request", "a PublishClientEnvelopesRequest", error) from error
        if len(request.envelopes) > MOST_ENVELOPES:
            count = len(request.envelopes)
            raise InvalidRequest("envelopes", f"at most {MOST_ENVELOPES}", count)
        publications = [_routed(each, caller.host) for each in request.envelopes]
        published = await asyncio.gather(*map(self._publisher.publish, publications))
        return Envelopes(envelopes=published).SerializeToString()


def _routed(client_envelope: bytes, client: str) -> Publication:
    try:
        return route(client_envelope, client)
    except PublishRefused as error:
        place = error.place or error.reason
        raise InvalidRequest(error.subject, error.expected, error.got, place) from error
