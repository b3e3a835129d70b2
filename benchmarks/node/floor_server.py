"""`python -m benchmarks.node.floor_server`: gRPC alone, in a process of its own as the node is.

It prints its port. ``Echo`` answers as many bytes as a published envelope has; ``Stream`` sends the
same frame as often as it is asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

FRAMES: Final = 500
"""How many frames a stream has."""

ADDED_BYTES: Final = 130
"""Bytes by which a stored envelope is longer than a payer's."""

SERVICE: Final = "floor.Floor"
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 25 << 20),
    ("grpc.max_send_message_length", 25 << 20),
)


async def _echo(data: bytes, _: Any) -> bytes:
    return data + bytes(ADDED_BYTES)


async def _stream(data: bytes, _: Any) -> AsyncIterator[bytes]:
    for _ in range(FRAMES):
        yield data


async def _serve() -> None:
    server = grpc.aio.server(options=_OPTIONS)
    methods: dict[str, Any] = {
        "Echo": grpc.unary_unary_rpc_method_handler(_echo),
        "Stream": grpc.unary_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_serve())
