"""Connections to other nodes; each call carries this node's token, or none."""

from __future__ import annotations

from typing import Any

import grpc

from chainkit.nodes.channel import connect
from chainkit.types import Node
from chainkit_node.peers.tokens import PeerTokens


class PeerConnection:
    """One node, as an asyncio client: requests and answers are bytes.

    A method is called by its path, such as ``/package.Service/Method``. Each call adds the token
    itself, without an interceptor, so that the caller gets grpcio's own call types.
    """

    def __init__(self, node: Node, tokens: PeerTokens | None) -> None:
        """Take the registry's entry and this node's tokens; the first call connects.

        Without tokens the calls are a stranger's. Raises ConfigurationError for a URL that is not
        of the form.
        """
        self.node = node
        self._tokens = tokens
        self._channel = connect(f"URL of node {node.node_id}", node.http_address)

    def unary(
        self, method: str, request: bytes, timeout_seconds: float
    ) -> grpc.aio.UnaryUnaryCall[bytes, bytes]:
        """Return a call with one answer."""
        multicallable: Any = self._channel.unary_unary(method)
        call: grpc.aio.UnaryUnaryCall[bytes, bytes] = multicallable(
            request, timeout=timeout_seconds, metadata=self._metadata()
        )
        return call

    def stream(
        self, method: str, request: bytes, timeout_seconds: float | None = None
    ) -> grpc.aio.UnaryStreamCall[bytes, bytes]:
        """Return a call whose answers come one after the other; None waits without end."""
        multicallable: Any = self._channel.unary_stream(method)
        call: grpc.aio.UnaryStreamCall[bytes, bytes] = multicallable(
            request, timeout=timeout_seconds, metadata=self._metadata()
        )
        return call

    async def close(self) -> None:
        """End all calls."""
        await self._channel.close()

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return () if self._tokens is None else self._tokens.metadata(self.node.node_id)
