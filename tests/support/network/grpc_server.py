"""A node's stand-in: methods of ours, served by the gRPC server of Python's library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any, Final, NoReturn

import grpc

from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.grpc_methods import (
    UNBOUNDED,
    Bounds,
    Caller,
    CallerStreaming,
    CallerUnary,
    Methods,
    caller_of,
    refusal_of,
    status_of,
)
from chainkit.service.grpc_services import HEALTH, REFLECTION, Health, service_routes
from chainkit.service.refusals import STATUS_KEY

OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
    # Nodes and today's clients send pings while no call is open.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
)


class GrpcServer:
    """Serves methods as EdgeServer does, in a test's own process; on the event loop's thread."""

    def __init__(
        self,
        methods: Methods,
        services: Mapping[str, Collection[str]],
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        """Take what EdgeServer takes."""
        self._server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=bounds.calls)
        self._health = Health(services)
        table = service_routes(methods, services, self._health, bounds)
        for service in (*services, HEALTH, REFLECTION):
            handlers = {name: _unary(each) for name, each in table.unary.get(service, {}).items()}
            streams, exchanges = table.streams.get(service, {}), table.exchanges.get(service, {})
            handlers |= {name: _streaming(each) for name, each in streams.items()}
            handlers |= {name: _exchange(each) for name, each in exchanges.items()}
            handler = grpc.method_handlers_generic_handler(service, handlers)
            self._server.add_generic_rpc_handlers((handler,))

    async def start(self, address: str = "127.0.0.1:0") -> int:
        """Listen in plain text, and return the port."""
        port = self._server.add_insecure_port(address)
        await self._server.start()
        return port

    async def say_ready(self, is_ready: bool) -> None:
        """Answer health checks with whether the node serves."""
        self._health.say_ready(is_ready)

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, and end open calls after so many seconds."""
        self._health.end()
        await self._server.stop(grace_seconds)


def _unary(method: CallerUnary) -> Any:
    async def answer(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            return await method(data, _caller(context))
        except Exception as error:
            return await abort(context, error)

    # No (de)serializers: the methods take and return bytes.
    return grpc.unary_unary_rpc_method_handler(answer)


def _caller(context: grpc.aio.ServicerContext[Any, Any]) -> Caller:
    metadata = tuple(context.invocation_metadata() or ())
    return caller_of(context.peer(), metadata, context.time_remaining())


def _streaming(method: CallerStreaming) -> Any:
    return grpc.unary_stream_rpc_method_handler(_answers(method))


def _exchange(method: CallerStreaming) -> Any:
    return grpc.stream_stream_rpc_method_handler(_answers(method))


def _answers(method: CallerStreaming) -> Any:
    async def answer(
        data: Any, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[bytes]:
        try:
            # Some clients wait for headers before they do anything else.
            await context.send_initial_metadata(())
            async for frame in method(data, _caller(context)):
                yield frame
        except Exception as error:
            await abort(context, error)

    return answer


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> NoReturn:
    """End a call with a refusal, or with INTERNAL and no text for any other error."""
    refusal = refusal_of(error)
    await context.abort(refusal.code, str(refusal), ((STATUS_KEY, status_of(refusal)),))
