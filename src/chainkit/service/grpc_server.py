"""A gRPC server of Python's library; its methods take and return bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any, Final, NoReturn

import grpc

from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.addresses import addresses_to_bind, not_bound
from chainkit.service.certificate import ServerCertificate
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

_OPTIONS: Final = (
    # With this option, two processes on one port would each get a share of the readers.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
    # Today's clients send a ping every 16 s, also while no call is open; other clients every 10 s.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Close a connection whose HTTP/2 handshake takes longer.
    ("grpc.server_handshake_timeout_ms", 20_000),
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.absolute_max_metadata_size", 16 << 10),
)


class GrpcServer:
    """A server of methods that take and give bytes; made and used on the event loop's thread."""

    def __init__(
        self,
        methods: Methods,
        services: Mapping[str, Collection[str]],
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        """Take the methods, and the services by the names of their methods.

        A service is called by its full name, such as ``xmtp.xmtpv4.payer_api.PayerApi``; health and
        reflection are added.
        """
        self._options = dict(_OPTIONS) | dict(bounds.options)
        self._server = grpc.aio.server(
            options=tuple(self._options.items()), maximum_concurrent_rpcs=bounds.calls
        )
        self._health = Health(services)
        named = (*services, HEALTH, REFLECTION)
        table = service_routes(methods, services, self._health, bounds)
        for service in named:
            handlers = {name: _unary(each) for name, each in table.unary.get(service, {}).items()}
            streams, exchanges = table.streams.get(service, {}), table.exchanges.get(service, {})
            handlers |= {name: _streaming(each) for name, each in streams.items()}
            handlers |= {name: _exchange(each) for name, each in exchanges.items()}
            handler = grpc.method_handlers_generic_handler(service, handlers)
            self._server.add_generic_rpc_handlers((handler,))

    async def start(self, address: str, certificate: ServerCertificate | None = None) -> int:
        """Listen at ``HOST:PORT``, without a certificate in plain text; port 0 takes a free one.

        Return the port.

        Raises ConfigurationError where nobody can listen there.
        """
        addresses_to_bind(address, bool(self._options["grpc.so_reuseport"]))
        try:
            if certificate is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, certificate.credentials())
        except RuntimeError as error:
            raise not_bound(address, error) from error
        await self._server.start()
        return port

    async def say_ready(self, is_ready: bool) -> None:
        """Answer health checks with whether the node serves (grpc.health.v1)."""
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
