"""A gRPC server whose methods take and return bytes: stored bytes are answered unchanged.

A method answers, or raises a Refusal, which names gRPC's code and may have a cursor for details.
Each refusal has a google.rpc.Status, which distinguishes a refusal from a broken connection. A
caller sees no other error: a fault of the service is logged, and answered as INTERNAL without text.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import grpc
from google.rpc import status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from chainkit.errors import ChainkitError, ConfigurationError, StoreError
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.allowance import address_of
from chainkit.service.database_away import database_away
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import STATUS_KEY, PassedOn, Refusal


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a call, for methods that depend on the client."""

    peer: str
    """gRPC's name of the peer: ``ipv4:127.0.0.1:41234`` or ``ipv6:%5B::1%5D:41234``."""
    authorization: str | None = field(default=None, repr=False)
    """The metadata ``authorization``; None where it is missing or occurs more than once."""
    seconds: float | None = None
    """Time until the call's deadline; None where the caller named no deadline."""

    @property
    def address(self) -> str:
        """The address that the caller counts as, without a token: see ``address_of``."""
        return address_of(self.peer)


Unary = Callable[[bytes], Awaitable[bytes]]
CallerUnary = Callable[[bytes, Caller], Awaitable[bytes]]
Streaming = Callable[[bytes], AsyncIterator[bytes]]

_OPTIONS: Final = (
    # With this option, two processes on one port would each get a share of the readers.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
    # Today's clients send a ping every 16 s, also while no call is open; others every 10 s.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Close a connection whose HTTP/2 handshake takes longer.
    ("grpc.server_handshake_timeout_ms", 20_000),
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.absolute_max_metadata_size", 16 << 10),
)


@dataclass(frozen=True, slots=True)
class Methods:
    """Methods by their names; requests and answers are the bytes of messages."""

    unary: Mapping[str, Unary] = field(default_factory=dict)
    streams: Mapping[str, Streaming] = field(default_factory=dict)
    of_callers: Mapping[str, CallerUnary] = field(default_factory=dict)
    """Unary methods that take the caller as well."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of strangers, beside the sizes of messages."""

    interceptors: Sequence[grpc.aio.ServerInterceptor] = ()
    options: Sequence[tuple[str, int]] = ()
    """gRPC's options for connections; these options override the server's."""
    calls: int | None = None
    """Calls at a time, streams too; one more call is refused before the request is read."""


_UNBOUNDED: Final = Bounds()


class GrpcServer:
    """A server of methods that take and give bytes; made and used on the event loop's thread."""

    def __init__(
        self,
        methods: Methods,
        services: Mapping[str, Collection[str]],
        bounds: Bounds = _UNBOUNDED,
    ) -> None:
        """Take the methods, and the services by the names of their methods.

        A service is called by its full name, such as ``xmtp.xmtpv4.payer_api.PayerApi``; health and
        reflection are added.
        """
        handlers = {name: _unary(method) for name, method in methods.unary.items()}
        handlers |= {name: _of_caller(method) for name, method in methods.of_callers.items()}
        handlers |= {name: _streaming(method) for name, method in methods.streams.items()}
        self._options = dict(_OPTIONS) | dict(bounds.options)
        self._server = grpc.aio.server(
            interceptors=bounds.interceptors,
            options=tuple(self._options.items()),
            maximum_concurrent_rpcs=bounds.calls,
        )
        for service, names in services.items():
            handler = grpc.method_handlers_generic_handler(
                service, {name: handlers[name] for name in names}
            )
            self._server.add_generic_rpc_handlers((handler,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*services, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )
        self._services = tuple(services)

    async def start(self, address: str, certificate: grpc.ServerCredentials | None = None) -> int:
        """Listen at ``HOST:PORT``, without a certificate in plain text; port 0 takes a free one.

        Return the port.

        Raises ConfigurationError where nobody can listen there.
        """
        try:
            _try_to_bind(address, bool(self._options["grpc.so_reuseport"]))
            if certificate is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, certificate)
        except (OSError, RuntimeError) as error:
            expected, got = "an address to listen on", getattr(error, "strerror", None) or error
            raise ConfigurationError("--grpc", expected, got, address) from error
        await self._server.start()
        return port

    async def say_ready(self, is_ready: bool) -> None:
        """Answer health checks with whether the node serves (grpc.health.v1)."""
        status = health_pb2.HealthCheckResponse
        word = status.SERVING if is_ready else status.NOT_SERVING
        for name in ("", *self._services):
            await self._health.set(name, word)

    async def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, and end open calls after so many seconds."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_seconds)


def _try_to_bind(address: str, shares_port: bool) -> None:
    """Raise OSError where nobody can listen at any of a name's addresses.

    gRPC does not say why binding failed, and prints its own lines to standard error.
    """
    host, _, port = address.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    errors = []
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as trial:
            # As gRPC does: connections of a process that has just ended do not block the port.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares_port)
            try:
                trial.bind(place)
            except OSError as error:
                errors.append(error)
    if len(errors) == len(found):
        raise errors[0]


def _unary(method: Unary) -> Any:
    async def answer(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            return await method(data)
        except Exception as error:
            return await abort(context, error)

    # No (de)serializers: bytes go in and out as they are.
    return grpc.unary_unary_rpc_method_handler(answer)


def _of_caller(method: CallerUnary) -> Any:
    async def answer(data: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        try:
            return await method(data, _caller(context))
        except Exception as error:
            return await abort(context, error)

    return grpc.unary_unary_rpc_method_handler(answer)


def _caller(context: grpc.aio.ServicerContext[Any, Any]) -> Caller:
    metadata = context.invocation_metadata() or ()
    found = [value for key, value in metadata if key == "authorization"]
    value = found[0] if len(found) == 1 else None
    authorization = value if isinstance(value, str) else None
    return Caller(context.peer(), authorization, context.time_remaining())


def _streaming(method: Streaming) -> Any:
    async def answer(
        data: bytes, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[bytes]:
        try:
            # Some clients wait for headers before they do anything else.
            await context.send_initial_metadata(())
            async for frame in method(data):
                yield frame
        except Exception as error:
            await abort(context, error)

    return grpc.unary_stream_rpc_method_handler(answer)


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> NoReturn:
    """End a call with a refusal, or with INTERNAL and no text for any other error."""
    refusal = _refusal(error)
    status = refusal.details if isinstance(refusal, PassedOn) else None
    details = ((STATUS_KEY, _status(refusal) if status is None else status),)
    await context.abort(refusal.code, str(refusal), details)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StoreError):
        return database_away("database", "an answer", error)
    if not isinstance(error, ChainkitError):
        text = f"request: expected an answer, got {error!r}"
        log_event(LogEvent("request_failed", text, level=logging.ERROR))
    return Refusal("request", "an answer", "an error of the node; its log has more")


def _status(refusal: Refusal) -> bytes:
    """Write a google.rpc.Status whose detail is the cursor, if there is one."""
    code, message = refusal.code.value[0], str(refusal)
    status = status_pb2.Status(code=code, message=message)
    if refusal.cursor is not None:
        status.details.add().Pack(envelopes_pb2.Cursor(node_id_to_sequence_id=refusal.cursor))
    written: bytes = status.SerializeToString()
    return written
