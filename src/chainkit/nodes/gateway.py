"""A connection to an application's gateway, which pays and publishes to the chain or a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from chainkit.nodes.channel import connect, wait_until_connected
from chainkit.nodes.outcomes import NodeLost, sorted_out
from chainkit.protocol.methods import GRANT_UPLOAD, PUBLISH_CLIENT_ENVELOPES
from chainkit.protocol.proto import gateway_api_pb2, payer_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes

_GRACE_SECONDS: Final = 10.0


class Gateway:
    """A gateway, as an asyncio client: requests and answers are bytes."""

    def __init__(self, url: str) -> None:
        """Take ``http://host:port`` or ``https://host:port``; nothing is connected yet.

        Raises ConfigurationError for another URL.
        """
        self.url = url
        self._channel = connect("gateway", url)
        self._publish: Any = self._channel.unary_unary(PUBLISH_CLIENT_ENVELOPES)
        self._grant: Any = self._channel.unary_unary(GRANT_UPLOAD)

    async def publish(
        self, client_envelopes: Sequence[bytes], seconds: float, retention_days: int | None = None
    ) -> Sequence[bytes]:
        """Publish ClientEnvelopes, and return their OriginatorEnvelopes in the same order.

        ``retention_days`` is for how long nodes shall keep them, within the gateway's bounds; None
        for the gateway's policy. Raises PassedOn where the gateway refuses (Conflict,
        Unavailable), NodeUnreached where there is no connection to the gateway, and NodeLost where
        the answer was lost.
        """
        await self.connect()
        request = payer_api_pb2.PublishClientEnvelopesRequest(
            envelopes=client_envelopes, retention_days=retention_days
        )
        try:
            answer = await self._publish(request.SerializeToString(), timeout=seconds)
            # Envelopes has the field number of the gateway's answer.
            envelopes = Envelopes.FromString(answer).envelopes
        except grpc.aio.AioRpcError as error:
            raise sorted_out("gateway", error) from error
        except DecodeError as error:
            raise NodeLost("gateway", "envelopes", error) from error
        if len(envelopes) != len(client_envelopes):
            raise NodeLost("gateway", f"{len(client_envelopes)} envelopes", len(envelopes))
        return envelopes

    async def grant_upload(self, seconds: float) -> str:
        """Return a URL of the gateway's storage service, which takes one file, once.

        Raises as ``publish``; a gateway without a storage service refuses.
        """
        await self.connect()
        request = gateway_api_pb2.GrantUploadRequest().SerializeToString()
        try:
            answer = await self._grant(request, timeout=seconds)
            url: str = gateway_api_pb2.GrantUploadResponse.FromString(answer).upload_url
        except grpc.aio.AioRpcError as error:
            raise sorted_out("gateway", error) from error
        except DecodeError as error:
            raise NodeLost("gateway", "an upload URL", error) from error
        return url

    async def connect(self) -> None:
        """Connect before a call: after a failure nothing was sent. Raises NodeUnreached."""
        await wait_until_connected(f"gateway {self.url}", self.url, self._channel)

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close(_GRACE_SECONDS)
