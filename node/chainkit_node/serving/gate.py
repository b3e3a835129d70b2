"""Stands before every method of the server, also health and reflection, and bounds each stranger.

A request above the rate of its address, one call too many, or one stream too many is refused before
its method sees it. Answers above an address's rate of bytes are slowed down, so that a stream goes
on; a request that would have to wait for longer than a moment is refused instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, Final, NoReturn

import grpc

from chainkit.service.allowance import Buckets, Held, address_of
from chainkit.service.grpc_server import Bounds, abort
from chainkit.service.refusals import Overloaded, Refusal
from chainkit_node.settings import StrangerLimits

_MOMENT_SECONDS: Final = 1.0
"""How long an answer waits because of what its address got before."""

_CALLS_BESIDE_STREAMS: Final = 100

_CODES: Final = {code.value[0]: code.name for code in grpc.StatusCode}

_Context = grpc.aio.ServicerContext[Any, Any]
Refused = Callable[[str, str], None]
"""Takes the method's name and the name of gRPC's code."""


class Gate(grpc.aio.ServerInterceptor):
    """Bounds each address; used on the event loop's thread."""

    def __init__(
        self,
        limits: StrangerLimits,
        refused: Refused,
        clock: Callable[[], float],
    ) -> None:
        """Take the limits, and whom to tell of each refusal, also of the methods' own.

        The clock is in seconds, and only grows.
        """
        self._limits = limits
        self._refused = refused
        self._clock = clock
        self._requests = Buckets(limits.requests_per_second, limits.request_burst)
        self._bytes = Buckets(limits.answer_bytes_per_second, limits.answer_bytes_per_second)
        self._streams = Held(limits.streams, limits.streams_per_address)
        self._filters = Held(limits.filter_bytes, limits.filter_bytes_per_address)
        self._calls = 0
        self._guarded: dict[str, grpc.RpcMethodHandler[Any, Any] | None] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the method's handler behind the gate, or None for a method that is not there."""
        method = handler_call_details.method
        if method in self._guarded:
            return self._guarded[method]
        handler = await continuation(handler_call_details)
        if handler is None:
            # Not kept: a stranger chooses the name.
            return None
        self._guarded[method] = guarded = self._guard(method.rpartition("/")[2], handler)
        return guarded

    def _guard(self, method: str, handler: Any) -> Any:
        writers = handler.request_deserializer, handler.response_serializer
        if handler.stream_stream is not None:
            guarded = self._streaming(method, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(guarded, *writers)
        if handler.unary_stream is not None:
            guarded = self._streaming(method, handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(guarded, *writers)
        return grpc.unary_unary_rpc_method_handler(
            self._unary(method, handler.unary_unary), *writers
        )

    def _unary(self, method: str, inner: Any) -> Any:
        async def answer(request: Any, context: _Context) -> Any:
            address = address_of(context.peer())
            try:
                self._admit(address)
                self._begin_call()
                try:
                    await self._pace(address, _MOMENT_SECONDS)
                    answer = await inner(request, context)
                finally:
                    self._calls -= 1
                self._bytes.take(address, self._clock(), _size(answer))
                return answer
            except (Refusal, grpc.aio.AbortError) as error:
                await self._tell(method, context, error)

        return answer

    def _streaming(self, method: str, inner: Any) -> Any:
        async def answer(request: Any, context: _Context) -> AsyncIterator[Any]:
            address = address_of(context.peer())
            try:
                self._admit(address)
                if is_stream := hasattr(request, "__aiter__"):
                    request = self._admitted(address, request)
                size = 0 if is_stream else _size(request)
                with (
                    self._holding(self._streams, address, 1, "open streams"),
                    self._holding(self._filters, address, size, "bytes of streams' requests"),
                ):
                    frames = inner(request, context)
                    if isawaitable(frames):
                        # A method of the old style, which writes its frames itself.
                        await frames
                        return
                    async for frame in frames:
                        await self._pace(address)
                        self._bytes.take(address, self._clock(), _size(frame))
                        yield frame
            except (Refusal, grpc.aio.AbortError) as error:
                await self._tell(method, context, error)

        return answer

    async def _admitted(self, address: str, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            self._admit(address)
            yield request

    def _admit(self, address: str) -> None:
        now = self._clock()
        wait = self._requests.seconds_to_wait(address, now)
        if wait:
            most = f"at most {self._limits.requests_per_second:g} a second from one address"
            raise Overloaded("requests", most, f"more; try again in {wait:.3f} s")
        self._requests.take(address, now)

    async def _pace(self, address: str, most_seconds: float | None = None) -> None:
        """Wait until the address may have more bytes."""
        while wait := self._bytes.seconds_to_wait(address, self._clock()):
            if most_seconds is not None and wait > most_seconds:
                most = f"at most {self._limits.answer_bytes_per_second} bytes a second"
                raise Overloaded("answers", most, f"more; try again in {wait:.3f} s")
            await asyncio.sleep(wait)

    def _begin_call(self) -> None:
        if self._limits.calls and self._calls >= self._limits.calls:
            expected = f"fewer than {self._limits.calls} calls at a time"
            raise Overloaded("calls", expected, "as many; try again later")
        self._calls += 1

    @contextmanager
    def _holding(self, held: Held, address: str, amount: int, name: str) -> Iterator[None]:
        if not held.has_room(amount):
            expected = f"at most {held.most} {name} in all"
            raise Overloaded("streams", expected, "more; try another node")
        if not held.has_room_for(address, amount):
            expected = f"at most {held.most_of_one} {name} from one address"
            raise Overloaded("streams", expected, "more; close one")
        held.take(address, amount)
        try:
            yield
        finally:
            held.give_back(address, amount)

    async def _tell(self, method: str, context: _Context, error: Exception) -> NoReturn:
        """Tell of a refusal, the gate's own or one of the method, and end the call with it."""
        if isinstance(error, Refusal):
            self._refused(method, error.code.name)
            await abort(context, error)
        self._refused(method, _CODES.get(_number(context.code()), "UNKNOWN"))
        raise error


def server_bounds(
    limits: StrangerLimits,
    refused: Refused,
    clock: Callable[[], float] = time.monotonic,
    shares_port: bool = False,
) -> Bounds:
    """Return a gate, and what of the limits gRPC keeps itself.

    ``shares_port`` lets other processes listen at the same address; each counts for itself.
    """
    options = [("grpc.so_reuseport", 1)] if shares_port else []
    if limits.connections:
        options.append(("grpc.max_allowed_incoming_connections", limits.connections))
    if limits.streams_per_address:
        # One connection has no more than its address may have, and some calls beside them.
        most = limits.streams_per_address + _CALLS_BESIDE_STREAMS
        options.append(("grpc.max_concurrent_streams", most))
    # The gate counts both apart, and refuses in words; this bounds what waits to be read.
    calls = limits.calls + limits.streams if limits.calls and limits.streams else None
    return Bounds((Gate(limits, refused, clock),), options, calls)


def _size(answer: Any) -> int:
    return len(answer) if isinstance(answer, bytes) else int(answer.ByteSize())


def _number(code: Any) -> int:
    """Return gRPC's number of a code that is given as such, or as a number."""
    return int(code.value[0]) if isinstance(code, grpc.StatusCode) else int(code)
