"""Requests to another node, and its answers or what went wrong instead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError

from chainkit.errors import ChainkitError, MalformedData
from chainkit.nodes.channel import why_unreached
from chainkit.nodes.outcomes import cursor_in, is_lost, status_details
from chainkit.protocol.envelope_queries import envelopes_behind, page_behind
from chainkit.protocol.methods import QUERY_ENVELOPES, SUBSCRIBE_ENVELOPES
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit_node.peers.connections import PeerConnection

QUIET_SECONDS: Final = 30.0
"""A stream without news owes no frame: after so long without any, a query asks for an answer.

Below the channel's KEEPALIVE_SECONDS: an answer comes before each ping is due, and servers that
allow one ping in five minutes count none.
"""

_ANSWER_SECONDS: Final = 10.0
"""How long the answer of such a query may take."""


class PeerSilent(ChainkitError):
    """The node did not answer in time, or there is no connection to it."""


class PeerRefused(ChainkitError):
    """The node answered with an error code. ``cursor`` is where to go on, if the node gave one."""

    cursor: Mapping[int, int] | None = None
    code: grpc.StatusCode | None = None
    """gRPC's code; None where the node sent neither an answer nor an error."""


class Peer(Protocol):
    """Another node, as it is asked. Errors are PeerSilent, PeerRefused and MalformedData."""

    def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield no envelopes once the headers came, then the envelopes of each frame.

        The headers may take ``header_seconds``; a frame comes when there is news.
        """

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """Return the answer of a method, by its path, such as QUERY_ENVELOPES."""

    async def close(self) -> None:
        """End the connection, and all streams."""


class PeerClient:
    """One node, over gRPC."""

    def __init__(self, connection: PeerConnection) -> None:
        """Take the connection; ``close`` ends it."""
        self._connection = connection
        self._subject = f"node {connection.node.node_id}"

    async def subscribe(
        self, originator_id: int, after_id: int, header_seconds: float
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the envelopes of each frame; see ``Peer``."""
        request = subscription(originator_id, after_id).SerializeToString()
        call = self._connection.stream(SUBSCRIBE_ENVELOPES, request)
        try:
            await self._in_time(call.initial_metadata(), header_seconds)
            # A call that failed has headers, too: gRPC makes them up.
            if not call.done():
                yield []
            while (frame := await self._frame(call, originator_id, after_id)) is not grpc.aio.EOF:
                yield self._envelopes(frame)
            raise PeerSilent(self._subject, "a stream without an end", "its end")
        finally:
            call.cancel()

    async def _frame(self, call: Any, originator_id: int, after_id: int) -> Any:
        """Wait for the next frame for as long as the node answers queries."""
        reading = asyncio.ensure_future(call.read())
        try:
            while not (await asyncio.wait([reading], timeout=QUIET_SECONDS))[0]:
                # A refusal is an answer.
                with suppress(PeerRefused, MalformedData):
                    await query(self, originator_id, after_id, 1, _ANSWER_SECONDS)
            return await reading
        except grpc.aio.AioRpcError as error:
            raise await self._sorted_out(error) from error
        finally:
            reading.cancel()

    async def call(self, method: str, request: bytes, seconds: float) -> bytes:
        """Return the answer of a method; see ``Peer``."""
        call = self._connection.unary(method, request, seconds)
        answer: bytes = await self._in_time(call, seconds)
        return answer

    async def close(self) -> None:
        """End the connection, and all streams."""
        await self._connection.close()

    async def _in_time(self, answer: Any, seconds: float) -> Any:
        try:
            # Not wait_for, which may lose a cancellation before Python 3.12.
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise PeerSilent(self._subject, f"an answer within {seconds:g} s", "none") from error
        except grpc.aio.AioRpcError as error:
            raise await self._sorted_out(error) from error

    async def _sorted_out(self, error: grpc.aio.AioRpcError) -> ChainkitError:
        words = error.details() or error.code().name
        if is_lost(error):
            words = await why_unreached(self._connection.node.http_address, words)
            return PeerSilent(self._subject, "an answer", words)
        refusal = PeerRefused(self._subject, "envelopes", f"{error.code().name}: {words}")
        refusal.cursor = cursor_in(status_details(error))
        refusal.code = error.code()
        return refusal

    def _envelopes(self, frame: bytes) -> Sequence[bytes]:
        try:
            return Envelopes.FromString(frame).envelopes
        except DecodeError as error:
            raise MalformedData(self._subject, "envelopes", error) from error


async def query(
    peer: Peer, originator_id: int, after_id: int, limit: int, seconds: float
) -> Sequence[bytes]:
    """Return a page of an originator's envelopes behind a sequence id, as a peer has it."""
    request = page_behind(originator_id, after_id, limit).SerializeToString()
    answer = await peer.call(QUERY_ENVELOPES, request, seconds)
    try:
        return Envelopes.FromString(answer).envelopes
    except DecodeError as error:
        raise MalformedData("answer", "envelopes", error) from error


def subscription(originator_id: int, after_id: int) -> message_api_pb2.SubscribeEnvelopesRequest:
    """Return the request for an originator's envelopes behind a sequence id."""
    query = envelopes_behind(originator_id, after_id)
    return message_api_pb2.SubscribeEnvelopesRequest(query=query)
