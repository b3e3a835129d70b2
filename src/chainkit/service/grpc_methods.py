"""The methods of a gRPC service as bytes in and bytes out, whatever carries the calls.

A method answers, or raises a Refusal, which names gRPC's code and may have a cursor for details.
Each refusal has a google.rpc.Status, which distinguishes a refusal from a broken connection. A
caller sees no other error: a fault of the service is logged, and answered as INTERNAL without text.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from google.rpc import status_pb2

from chainkit.errors import ChainkitError, StoreError
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.allowance import address_of
from chainkit.service.database_away import database_away
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import PassedOn, Refusal


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a call, for methods that depend on the client."""

    peer: str
    """gRPC's name of the peer: ``ipv4:127.0.0.1:41234`` or ``ipv6:%5B::1%5D:41234``."""
    authorization: str | None = field(default=None, repr=False)
    """The metadata ``authorization``; None where it is missing or occurs more than once."""
    seconds: float | None = None
    """Time until the call's deadline; None where the caller named no deadline."""
    metadata: Sequence[tuple[str, str | bytes]] = field(default=(), repr=False)
    """All metadata of the call, keys in small letters."""

    @property
    def address(self) -> str:
        """The address that the caller counts as, without a token: see ``address_of``."""
        return address_of(self.peer)


def caller_of(
    peer: str, metadata: Sequence[tuple[str, str | bytes]], seconds: float | None
) -> Caller:
    """Return the caller in a call's metadata."""
    found = [value for key, value in metadata if key == "authorization"]
    value = found[0] if len(found) == 1 else None
    return Caller(peer, value if isinstance(value, str) else None, seconds, metadata)


class CallerGone(Exception):
    """The caller ended the call, or its connection."""


Unary = Callable[[bytes], Awaitable[bytes]]
CallerUnary = Callable[[bytes, Caller], Awaitable[bytes]]
Streaming = Callable[[bytes], AsyncIterator[bytes]]
Requests = bytes | AsyncIterator[bytes]
"""The one request of a call, or all requests of a call that streams them."""
CallerStreaming = Callable[[Requests, Caller], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class Methods:
    """Methods by their names; requests and answers are the bytes of messages."""

    unary: Mapping[str, Unary] = field(default_factory=dict)
    streams: Mapping[str, Streaming] = field(default_factory=dict)
    of_callers: Mapping[str, CallerUnary] = field(default_factory=dict)
    """Unary methods that take the caller as well."""
    request_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of a method's longest request, where it is another one than that of all messages."""


class Gate(Protocol):
    """Runs before every method, also of health and reflection."""

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        """Return the method behind the gate."""

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        """Return the method behind the gate."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of strangers, beside the sizes of messages."""

    gate: Gate | None = None
    calls: int | None = None
    """Calls at a time, streams too; one more call is refused before the request is read."""


UNBOUNDED: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Routes:
    """Methods behind the gate, by services and then by names."""

    unary: Mapping[str, Mapping[str, CallerUnary]]
    streams: Mapping[str, Mapping[str, CallerStreaming]]
    """Methods of one request and many answers."""
    exchanges: Mapping[str, Mapping[str, CallerStreaming]]
    """Methods of many requests and many answers."""


def routes(
    methods: Methods,
    services: Mapping[str, Collection[str]],
    exchanges: Mapping[str, Mapping[str, CallerStreaming]],
    gate: Gate | None,
) -> Routes:
    """Return the methods of each service, behind the gate where there is one."""
    unary = {name: _of_all(method) for name, method in methods.unary.items()}
    unary |= methods.of_callers
    streams = {name: _streaming(method) for name, method in methods.streams.items()}
    if gate is not None:
        unary = {name: gate.unary(name, method) for name, method in unary.items()}
        streams = {name: gate.streaming(name, method) for name, method in streams.items()}
        exchanges = {
            service: {name: gate.streaming(name, method) for name, method in found.items()}
            for service, found in exchanges.items()
        }
    return Routes(
        {
            key: {each: unary[each] for each in names if each in unary}
            for key, names in services.items()
        },
        {
            key: {each: streams[each] for each in names if each in streams}
            for key, names in services.items()
        },
        exchanges,
    )


def _of_all(method: Unary) -> CallerUnary:
    async def answer(request: bytes, _: Caller) -> bytes:
        return await method(request)

    return answer


def _streaming(method: Streaming) -> CallerStreaming:
    def answer(request: Requests, _: Caller) -> AsyncIterator[bytes]:
        assert isinstance(request, bytes)
        return method(request)

    return answer


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal that a caller sees, and log an error that no caller may see."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, StoreError):
        return database_away("database", "an answer", error)
    if not isinstance(error, ChainkitError):
        text = f"request: expected an answer, got {error!r}"
        log_event(LogEvent("request_failed", text, level=logging.ERROR))
    return Refusal("request", "an answer", "an error of the node; its log has more")


def status_of(refusal: Refusal) -> bytes:
    """Return a serialized google.rpc.Status whose detail is the cursor, if there is one."""
    if isinstance(refusal, PassedOn) and refusal.details is not None:
        return refusal.details
    code, message = refusal.code.value[0], str(refusal)
    status = status_pb2.Status(code=code, message=message)
    if refusal.cursor is not None:
        status.details.add().Pack(envelopes_pb2.Cursor(node_id_to_sequence_id=refusal.cursor))
    written: bytes = status.SerializeToString()
    return written
