"""Envoy with the operator's configuration holds as many streams as the node behind it allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from chainkit_node.settings import NodeLimits, StrangerLimits
from support.network.envoy import Envoy, configuration

DEFAULT_THRESHOLD = 1_024
"""Envoy's own, of requests that are open at once."""

STREAMS = 1_100

PER_CONNECTION = 100
"""Streams of one connection to Envoy, which allows no more."""

PATH = "/stand.In/Stream"


class Holding(grpc.GenericRpcHandler):
    """A stand-in of a node that answers each stream once, and keeps it open."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return grpc.unary_stream_rpc_method_handler(self.stream)

    async def stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield request
        await self.ended.wait()


def test_thresholds__defaults_of_a_node__are_above_its_streams() -> None:
    [cluster] = configuration(0, 0)["static_resources"]["clusters"]
    [threshold] = cluster["circuit_breakers"]["thresholds"]

    streams = StrangerLimits().streams + NodeLimits().streams

    assert threshold["max_requests"] >= 2 * streams
    assert threshold["max_pending_requests"] >= 2 * streams


def test_streams__more_than_envoys_default__none_overflows(tmp_path: Path) -> None:
    asyncio.run(hold(tmp_path))


async def hold(folder: Path) -> None:
    handler, server = Holding(), grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    proxy = Envoy(folder, f"http://127.0.0.1:{port}")
    options = [("grpc.use_local_subchannel_pool", 1)]
    target = proxy.url.removeprefix("http://")
    channels = [
        grpc.aio.insecure_channel(target, options=options) for _ in range(STREAMS // PER_CONNECTION)
    ]
    try:
        calls = [
            channel.unary_stream(PATH)(b"one")
            for channel in channels
            for _ in range(PER_CONNECTION)
        ]
        answers = await asyncio.gather(*(call.read() for call in calls), return_exceptions=True)
        refused = [each.details() for each in answers if isinstance(each, grpc.aio.AioRpcError)]
        assert not [words for words in refused if "overflow" in words]
        assert answers.count(b"one") > DEFAULT_THRESHOLD
    finally:
        handler.ended.set()
        for channel in channels:
            await channel.close()
        await server.stop(None)
        proxy.close()
