"""MisbehaviorApi over gRPC (XIP-49 §3.2.8). This module needs grpcio, which is an extra."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import grpc

from chainkit.council.gathering.gatherer import Ask, Connect
from chainkit.nodes.channel import connect
from chainkit.nodes.outcomes import as_endpoint_error
from chainkit.protocol.methods import QUERY_REPORTS
from chainkit.text.node_url import grpc_target
from chainkit.text.printable import printable

_SUBJECT: Final = "URL of the node"


def connect_for(seconds: float) -> Connect:
    """Return what connects to ``http://host[:port]`` or ``https://host[:port]``.

    An answer may take ``seconds``.
    """

    def connected(url: str) -> AbstractAsyncContextManager[Ask]:
        _, target = grpc_target(_SUBJECT, url)
        return _asking(url, printable(target), seconds)

    return connected


@asynccontextmanager
async def _asking(url: str, target: str, seconds: float) -> AsyncIterator[Ask]:
    async with connect(_SUBJECT, url) as channel:
        query: Any = channel.unary_unary(QUERY_REPORTS)

        async def ask(request: bytes) -> bytes:
            try:
                answer: bytes = await query(request, timeout=seconds)
            except grpc.aio.AioRpcError as error:
                raise as_endpoint_error(f"node at {target}", "a page of reports", error) from error
            return answer

        yield ask
