"""Servers of this process that nodes take for other nodes: gRPC's own, of methods on bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import grpc

from chainkit.protocol.methods import (
    COMPARE_RANGES,
    MOST_MESSAGE_BYTES,
    QUERY_ENVELOPES,
    SUBSCRIBE_ENVELOPES,
)

Answer = Callable[[bytes], Awaitable[bytes]]

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
)


async def serve_peer(
    port: int,
    compare: Answer,
    query: Answer,
    subscribe: Callable[[bytes], AsyncIterator[bytes]],
) -> tuple[grpc.aio.Server, int]:
    """Serve the methods that nodes call of each other; return the server and its port.

    Port 0 takes a free one.
    """

    async def compared(request: bytes, _: Any) -> bytes:
        return await compare(request)

    async def queried(request: bytes, _: Any) -> bytes:
        return await query(request)

    async def subscribed(request: bytes, _: Any) -> AsyncIterator[bytes]:
        async for frame in subscribe(request):
            yield frame

    server = grpc.aio.server(options=_OPTIONS)
    methods: dict[str, Any] = {
        COMPARE_RANGES: grpc.unary_unary_rpc_method_handler(compared),
        QUERY_ENVELOPES: grpc.unary_unary_rpc_method_handler(queried),
        SUBSCRIBE_ENVELOPES: grpc.unary_stream_rpc_method_handler(subscribed),
    }
    for path, handler in methods.items():
        _, service, name = path.split("/")
        handlers = grpc.method_handlers_generic_handler(service, {name: handler})
        server.add_generic_rpc_handlers((handlers,))
    listens_at = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    return server, listens_at
