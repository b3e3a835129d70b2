"""A server in front of a node that hands every call on, and counts those that compare logs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from benchmarks.network.serving import serve_peer
from benchmarks.node.load import channel
from chainkit.protocol.methods import COMPARE_RANGES, QUERY_ENVELOPES, SUBSCRIBE_ENVELOPES


class InFront:
    """Used on one event loop. A node whose registered address it has is asked through it."""

    def __init__(self, node_port: int) -> None:
        """Stand in front of a node; ``start`` begins to listen."""
        self._channel = channel(node_port)
        self._server: grpc.aio.Server | None = None
        self.began = 0.0
        """When the first comparison was asked for, by ``time.perf_counter``."""
        self.comparisons = 0
        self.answered_bytes = 0
        """Those of answers to comparisons."""
        self.asked_bytes = 0

    async def start(self, port: int) -> None:
        """Listen at a port of this machine."""
        methods = (self._compare, self._query, self._subscribe)
        self._server, _ = await serve_peer(port, *methods)

    async def stop(self) -> None:
        """End all calls."""
        if self._server is not None:
            await self._server.stop(0.0)
        await self._channel.close()

    async def _compare(self, request: bytes) -> bytes:
        self.began = self.began or time.perf_counter()
        method: Any = self._channel.unary_unary(COMPARE_RANGES)
        answer: bytes = await method(request)
        self.comparisons += 1
        self.asked_bytes += len(request)
        self.answered_bytes += len(answer)
        return answer

    async def _query(self, request: bytes) -> bytes:
        method: Any = self._channel.unary_unary(QUERY_ENVELOPES)
        answer: bytes = await method(request)
        return answer

    async def _subscribe(self, request: bytes) -> AsyncIterator[bytes]:
        method: Any = self._channel.unary_stream(SUBSCRIBE_ENVELOPES)
        async for frame in method(request):
            yield frame
