"""A server in front of a node that hands every call on, and counts those that compare logs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, Final

from benchmarks.node.load import channel
from chainkit.protocol.methods import COMPARE_RANGES, QUERY_ENVELOPES, SUBSCRIBE_ENVELOPES
from chainkit.service.grpc_methods import Methods
from localnet.grpc_server import GrpcServer

SERVICES: Final = {
    path.split("/")[1]: [
        each.split("/")[2]
        for each in (COMPARE_RANGES, QUERY_ENVELOPES, SUBSCRIBE_ENVELOPES)
        if each.split("/")[1] == path.split("/")[1]
    ]
    for path in (COMPARE_RANGES, QUERY_ENVELOPES)
}
"""Methods that nodes call of each other, by their services."""


class InFront:
    """Used on one event loop. A node whose registered address it has is asked through it."""

    def __init__(self, node_port: int) -> None:
        """Stand in front of a node; ``start`` begins to listen."""
        self._channel = channel(node_port)
        methods = Methods(
            unary={"CompareRanges": self._compare, "QueryEnvelopes": self._query},
            streams={"SubscribeEnvelopes": self._subscribe},
        )
        self._server = GrpcServer(methods, SERVICES)
        self.began = 0.0
        """When the first comparison was asked for, by ``time.perf_counter``."""
        self.comparisons = 0
        self.answered_bytes = 0
        """Those of answers to comparisons."""
        self.asked_bytes = 0

    async def start(self, port: int) -> None:
        """Listen at a port of this machine."""
        await self._server.start(f"127.0.0.1:{port}")

    async def stop(self) -> None:
        """End all calls."""
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
