"""Stands before every method of the server, also health and reflection, and bounds each caller.

A request above the rate of its address, one call too many, or one stream too many is refused before
its method sees it. A request of many bytes or parts counts as several. Answers above an address's
rate of bytes are slowed down, so that a stream goes on; a request that would have to wait for
longer than a moment is refused instead. Bytes to publish have a rate of their own. Other nodes have
limits of their own, each for itself: ``callers`` distinguishes nodes from strangers.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from inspect import isawaitable
from typing import Any, Final, NoReturn

import grpc

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.service.grpc_server import Bounds, abort
from chainkit.service.refusals import Refusal
from chainkit_node.asked_by import ASKED_BY
from chainkit_node.serving.callers import Caller, Callers, Peers
from chainkit_node.serving.limiter import CallerLimiter
from chainkit_node.settings import NodeLimits, StrangerLimits

_CALLS_BESIDE_STREAMS: Final = 100
_PUBLISH: Final = PUBLISH_PAYER_ENVELOPES.rpartition("/")[2]

_CODES: Final = {code.value[0]: code.name for code in grpc.StatusCode}

_Context = grpc.aio.ServicerContext[Any, Any]
Refused = Callable[[str, str], None]
"""Takes the method's name and the name of gRPC's code."""


class Gate(grpc.aio.ServerInterceptor):
    """Bounds each caller; used on the event loop's thread."""

    def __init__(self, callers: Callers, refused: Refused) -> None:
        """Take the callers, and a callback for each refusal, also for those of the methods."""
        self._callers = callers
        self._refused = refused
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
            # The name is not kept: a stranger chooses it.
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
            try:
                caller = self._admitted(context, _size(request))
                storing: AbstractContextManager[None] = nullcontext()
                if method == _PUBLISH:
                    storing = caller.limiter.publish(caller.name, _size(request))
                with caller.limiter.call(), storing:
                    await caller.limiter.pace_call(caller.name)
                    answer = await inner(request, context)
                caller.limiter.sent(caller.name, _size(answer))
                return answer
            except (Refusal, grpc.aio.AbortError) as error:
                await self._refuse(method, context, error)

        return answer

    def _streaming(self, method: str, inner: Any) -> Any:
        async def answer(request: Any, context: _Context) -> AsyncIterator[Any]:
            try:
                is_stream = hasattr(request, "__aiter__")
                length = 0 if is_stream else _size(request)
                caller = self._admitted(context, length)
                if is_stream:
                    request = _admitted(caller, request)
                with caller.limiter.stream(caller.name, length):
                    frames = inner(request, context)
                    if isawaitable(frames):
                        # A method of the old style, which writes its frames itself.
                        await frames
                        return
                    async with aclosing(frames):
                        async for frame in frames:
                            await caller.limiter.pace_frame(caller.name)
                            # A stream may stay open for longer than its node stays enabled.
                            caller.check()
                            caller.limiter.sent(caller.name, _size(frame))
                            yield frame
            except (Refusal, grpc.aio.AbortError) as error:
                await self._refuse(method, context, error)

        return answer

    def _admitted(self, context: _Context, length: int) -> Caller:
        """Count a request, and let all that answers it know its caller."""
        caller = self._callers.admit(context)
        caller.limiter.charge(caller.name, length)
        # gRPC answers each request in a task of its own.
        ASKED_BY.set(caller.limiter.asked_by(caller.name))
        return caller

    async def _refuse(self, method: str, context: _Context, error: Exception) -> NoReturn:
        """Report a refusal, of the gate or of the method, and end the call with it."""
        if isinstance(error, Refusal):
            self._refused(method, error.code.name)
            await abort(context, error)
        self._refused(method, _CODES.get(_number(context.code()), "UNKNOWN"))
        raise error


def server_bounds(
    strangers: StrangerLimits,
    nodes: NodeLimits,
    peers: Peers,
    refused: Refused,
    clock: Callable[[], float] = time.monotonic,
    shares_port: bool = False,
    counts_nodes: Callable[[Callable[[], int]], None] = lambda count: None,
) -> Bounds:
    """Return a gate, and the limits that gRPC keeps itself.

    ``shares_port`` lets other processes listen at the same address; each counts for itself. The
    clock is in seconds, and only grows. ``counts_nodes`` takes how to count nodes' streams.
    """
    options = [("grpc.so_reuseport", 1)] if shares_port else []
    if strangers.connections:
        options.append(("grpc.max_allowed_incoming_connections", strangers.connections))
    if strangers.streams_of_one and nodes.streams_of_one:
        # One connection has no more than its address may have, and some calls beside them.
        most = max(strangers.streams_of_one, nodes.streams_of_one) + _CALLS_BESIDE_STREAMS
        options.append(("grpc.max_concurrent_streams", most))
    limiters = CallerLimiter(nodes, "node", clock), CallerLimiter(strangers, "address", clock)
    counts_nodes(limiters[0].open_streams)
    gate = Gate(Callers(peers, *limiters), refused)
    # The gate counts each limit separately, and gives reasons; the sum bounds unread calls.
    limits = (strangers.calls, strangers.streams, nodes.calls, nodes.streams)
    return Bounds((gate,), options, sum(limits) if all(limits) else None)


async def _admitted(caller: Caller, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        caller.check()
        caller.limiter.admit(caller.name)
        yield request


def _size(answer: Any) -> int:
    return len(answer) if isinstance(answer, bytes) else int(answer.ByteSize())


def _number(code: Any) -> int:
    """Return the number of a gRPC code, given as a code or as a number."""
    return int(code.value[0]) if isinstance(code, grpc.StatusCode) else int(code)
