"""Requests to another node, as this node makes them: bytes in, serialized envelopes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from chainkit.errors import ChainkitError, MalformedData
from chainkit.protocol.proto import envelopes_pb2, message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.grpc_client import connect, status_details
from chainkit.types import Node

Metadata = Callable[[], Sequence[tuple[str, str]]]
"""Returns what goes with each call: who asks."""

_SERVICE: Final = "/xmtp.xmtpv4.message_api.ReplicationApi"
_MOST_RECONNECT_MS: Final = 5000
_GRACE_SECONDS: Final = 1.0


class PeerSilent(ChainkitError):
    """The node did not answer in time, or there is no connection to it."""


class PeerRefused(ChainkitError):
    """The node answered with an error code. ``cursor`` tells from where to go on, if it does."""

    cursor: Mapping[int, int] | None = None


class Peer(Protocol):
    """Another node, as it is asked. Errors are PeerSilent, PeerRefused and MalformedData."""

    def subscribe(
        self, originator_id: int, after_id: int, first_seconds: float, idle_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the envelopes of each frame; the first one may be empty, and so are heartbeats.

        The first frame may take ``first_seconds``, each other one ``idle_seconds``.
        """

    async def query(
        self, originator_id: int, after_id: int, limit: int, seconds: float
    ) -> Sequence[bytes]:
        """Return a page of an originator's envelopes behind a sequence id."""

    async def close(self) -> None:
        """End the connection, and all streams."""


class PeerClient:
    """One node, over gRPC."""

    def __init__(self, node: Node, metadata: Metadata) -> None:
        """Take the registry's entry; nothing is connected yet.

        Raises ConfigurationError for an address that is not of the form.
        """
        self.node_id = node.node_id
        self._subject = f"node {node.node_id}"
        self._metadata = metadata
        url = f"address of node {node.node_id}"
        self._channel = connect(url, node.http_address, _MOST_RECONNECT_MS)
        self._subscribe: Any = self._channel.unary_stream(f"{_SERVICE}/SubscribeEnvelopes")
        self._query: Any = self._channel.unary_unary(f"{_SERVICE}/QueryEnvelopes")

    async def subscribe(
        self, originator_id: int, after_id: int, first_seconds: float, idle_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the envelopes of each frame; see ``Peer``."""
        request = subscription(originator_id, after_id).SerializeToString()
        call = self._subscribe(request, metadata=self._metadata())
        seconds = first_seconds
        try:
            while True:
                frame = await self._in_time(call.read(), seconds)
                if frame is grpc.aio.EOF:
                    raise PeerRefused(self._subject, "a stream without an end", "its end")
                yield self._envelopes(frame)
                seconds = idle_seconds
        finally:
            call.cancel()

    async def query(
        self, originator_id: int, after_id: int, limit: int, seconds: float
    ) -> Sequence[bytes]:
        """Return a page of an originator's envelopes; see ``Peer``."""
        request = message_api_pb2.QueryEnvelopesRequest(
            query=_behind(originator_id, after_id), limit=limit
        )
        call = self._query(request.SerializeToString(), metadata=self._metadata())
        return self._envelopes(await self._in_time(call, seconds))

    async def close(self) -> None:
        """End the connection, and all streams."""
        await self._channel.close(_GRACE_SECONDS)

    async def _in_time(self, answer: Any, seconds: float) -> Any:
        try:
            # Not wait_for, which may lose a cancellation before Python 3.12.
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise PeerSilent(self._subject, f"an answer within {seconds:g} s", "none") from error
        except grpc.aio.AioRpcError as error:
            raise self._sorted_out(error) from error

    def _sorted_out(self, error: grpc.aio.AioRpcError) -> ChainkitError:
        words = error.details() or error.code().name
        details = status_details(error)
        # gRPC itself says so where there is no connection.
        if details is None and error.code() is grpc.StatusCode.UNAVAILABLE:
            return PeerSilent(self._subject, "an answer", words)
        refusal = PeerRefused(self._subject, "envelopes", f"{error.code().name}: {words}")
        refusal.cursor = cursor_in(details)
        return refusal

    def _envelopes(self, frame: bytes) -> Sequence[bytes]:
        try:
            return Envelopes.FromString(frame).envelopes
        except DecodeError as error:
            raise MalformedData(self._subject, "envelopes", error) from error


def subscription(originator_id: int, after_id: int) -> message_api_pb2.SubscribeEnvelopesRequest:
    """Return the request for an originator's envelopes behind a sequence id."""
    return message_api_pb2.SubscribeEnvelopesRequest(query=_behind(originator_id, after_id))


def cursor_in(details: bytes | None) -> Mapping[int, int] | None:
    """Return the cursor in the details of a refusal, None where there is none."""
    cursor = envelopes_pb2.Cursor()
    try:
        found = status_pb2.Status.FromString(details or b"").details
        if not found or not found[0].Unpack(cursor):
            return None
    except DecodeError:
        return None
    return dict(cursor.node_id_to_sequence_id)


def _behind(originator_id: int, after_id: int) -> message_api_pb2.EnvelopesQuery:
    return message_api_pb2.EnvelopesQuery(
        originator_node_ids=[originator_id],
        last_seen={"node_id_to_sequence_id": {originator_id: after_id}},
    )
