"""The nodes that a gateway publishes through: who they are, and one connection to each."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import grpc

from chainkit.errors import ConfigurationError, MalformedEnvelope
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.grpc_server import MOST_MESSAGE_BYTES
from chainkit.service.refusals import NotReady
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

_SERVICE: Final = "/xmtp.xmtpv4.message_api.ReplicationApi"
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
)


def in_order_of_preference(topic: bytes, node_ids: Collection[int]) -> list[int]:
    """Return node ids in the order in which a topic prefers them (XIP-49 §3.3.6).

    All clients of a topic begin with the same node, and go on with the same next one.
    """
    ordered = sorted(node_ids)
    if not ordered:
        return []
    start = zlib.crc32(topic) % len(ordered)
    return ordered[start:] + ordered[:start]


class NodeConnection:
    """One node, as an asyncio client: requests and answers are bytes."""

    def __init__(self, node_id: int, url: str) -> None:
        """Take ``http://host:port`` or ``https://host:port``; nothing is connected yet.

        Raises ConfigurationError for anything else.
        """
        self.node_id = node_id
        self.url = url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"URL of node {node_id}", "http://… or https://…", url)
        target = parts.netloc if parts.port else f"{parts.netloc}:{_port(parts.scheme)}"
        if parts.scheme == "https":
            credentials = grpc.ssl_channel_credentials()
            self._channel = grpc.aio.secure_channel(target, credentials, options=_OPTIONS)
        else:
            self._channel = grpc.aio.insecure_channel(target, options=_OPTIONS)
        self._publish: Any = self._channel.unary_unary(f"{_SERVICE}/PublishPayerEnvelopes")
        self._query: Any = self._channel.unary_unary(f"{_SERVICE}/QueryEnvelopes")
        self._subscribe: Any = self._channel.unary_stream(f"{_SERVICE}/SubscribeEnvelopes")

    async def publish(self, payer_envelopes: Sequence[bytes], seconds: float) -> list[bytes]:
        """Let the node originate; return its OriginatorEnvelopes in the same order.

        Raises grpc.aio.AioRpcError.
        """
        request = Envelopes(envelopes=payer_envelopes).SerializeToString()
        answer = await self._publish(request, timeout=seconds)
        return list(Envelopes.FromString(answer).envelopes)

    async def behind(self, topic: bytes, originator_id: int, sequence_id: int) -> list[bytes]:
        """Return a page of a topic behind an originator's sequence id."""
        query = _query(topic, originator_id, sequence_id)
        request = message_api_pb2.QueryEnvelopesRequest(query=query).SerializeToString()
        answer = await self._query(request)
        return list(Envelopes.FromString(answer).envelopes)

    async def indexed(
        self, topic: bytes, sequence_id: int, transaction_hash: bytes, seconds: float
    ) -> bytes:
        """Wait until the node serves a payload of the chain; return its envelope.

        Raises TimeoutError and grpc.aio.AioRpcError.
        """
        query = _query(topic, BLOCKCHAIN_ORIGINATOR_ID, sequence_id - 1)
        request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
        async with asyncio.timeout(seconds):
            call = self._subscribe(request)
            try:
                async for frame in call:
                    for envelope in Envelopes.FromString(frame).envelopes:
                        if _is_of(envelope, transaction_hash):
                            return envelope
            finally:
                call.cancel()
        raise NotReady(f"stream of node {self.node_id}", "its envelopes", "its end")

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()


def _query(topic: bytes, originator_id: int, sequence_id: int) -> message_api_pb2.EnvelopesQuery:
    cursor = {originator_id: sequence_id}
    return message_api_pb2.EnvelopesQuery(
        topics=[topic], last_seen={"node_id_to_sequence_id": cursor}
    )


def _is_of(envelope: bytes, transaction_hash: bytes) -> bool:
    try:
        return parse_originator_envelope(envelope).transaction_hash == transaction_hash
    except MalformedEnvelope:
        # Another originator's, on the same topic.
        return False


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


class Nodes:
    """All nodes that the gateway names to its clients."""

    def __init__(self, urls: Mapping[int, str]) -> None:
        """Take the URLs by node id. Raises ConfigurationError for one that cannot be used."""
        self.urls = dict(urls)
        self._connections = {each: NodeConnection(each, url) for each, url in urls.items()}

    def for_topic(self, topic: bytes) -> list[NodeConnection]:
        """Return the nodes in the order in which a topic prefers them."""
        return [self._connections[each] for each in in_order_of_preference(topic, self.urls)]

    def node(self, node_id: int) -> NodeConnection | None:
        """Return a node, or None where it is not one of them any more."""
        return self._connections.get(node_id)

    def __iter__(self) -> Iterator[NodeConnection]:
        """Give every connection."""
        return iter(self._connections.values())

    async def close(self) -> None:
        """End all connections."""
        for connection in self._connections.values():
            await connection.close()
