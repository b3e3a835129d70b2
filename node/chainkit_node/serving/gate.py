"""Stands before every method of the server, also health and reflection, and bounds each caller.

A request above the rate of its address, one call too many, or one stream too many is refused before
its method sees it. A request of many bytes or parts counts as several. Answers above an address's
rate of bytes are slowed down, so that a stream goes on; a request that would have to wait for
longer than a moment is refused instead. Bytes to publish have a rate of their own. Other nodes have
limits of their own, each for itself: ``callers`` distinguishes nodes from strangers.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any, Final

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.service.counting_gate import CountingGate, Refused
from chainkit.service.grpc_methods import (
    Bounds,
    Caller,
    CallerStreaming,
    CallerUnary,
    Requests,
)
from chainkit_node.asked_by import ASKED_BY
from chainkit_node.serving.callers import Admitted, Callers, Peers
from chainkit_node.serving.limiter import CallerLimiter
from chainkit_node.settings import NodeLimits, StrangerLimits

_CALLS_BESIDE_STREAMS: Final = 100
_PUBLISH: Final = PUBLISH_PAYER_ENVELOPES.rpartition("/")[2]


class NodeGate:
    """Bounds each caller; used on the event loop's thread."""

    def __init__(self, callers: Callers) -> None:
        """Take the callers."""
        self._callers = callers

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        """Return the method behind the gate."""

        async def answer(request: bytes, caller: Caller) -> bytes:
            admitted = self._admitted(caller, len(request))
            storing: AbstractContextManager[None] = nullcontext()
            if method == _PUBLISH:
                storing = admitted.limiter.publish(admitted.name, len(request))
            with admitted.limiter.call(admitted.name), storing:
                await admitted.limiter.pace_call(admitted.name)
                answer = await inner(request, caller)
            admitted.limiter.sent(admitted.name, len(answer))
            return answer

        return answer

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        """Return the method behind the gate."""

        async def answer(requests: Requests, caller: Caller) -> AsyncIterator[bytes]:
            size = len(requests) if isinstance(requests, bytes) else 0
            admitted = self._admitted(caller, size)
            if not isinstance(requests, bytes):
                requests = _admitted(admitted, requests)
            with admitted.limiter.stream(admitted.name, size):
                answers: Any = inner(requests, caller)
                async with aclosing(answers) as frames:
                    async for frame in frames:
                        await admitted.limiter.pace_frame(admitted.name)
                        # A stream may stay open for longer than its node stays enabled.
                        admitted.check()
                        admitted.limiter.sent(admitted.name, len(frame))
                        yield frame

        return answer

    def _admitted(self, caller: Caller, length: int) -> Admitted:
        """Count a request, and let all that answers it know its caller."""
        admitted = self._callers.admit(caller)
        admitted.limiter.charge(admitted.name, length)
        # Each request is answered in a task of its own.
        ASKED_BY.set(admitted.limiter.asked_by(admitted.name))
        return admitted


def server_bounds(
    strangers: StrangerLimits,
    nodes: NodeLimits,
    peers: Peers,
    refused: Refused,
    clock: Callable[[], float] = time.monotonic,
    counts_nodes: Callable[[Callable[[], int]], None] = lambda count: None,
) -> Bounds:
    """Return a gate, and how many calls may be open; Envoy has the limits of connections.

    The clock is in seconds, and only grows. ``counts_nodes`` takes how to count nodes' streams.
    """
    limiters = CallerLimiter(nodes, "node", clock), CallerLimiter(strangers, "address", clock)
    counts_nodes(limiters[0].open_streams)
    gate = CountingGate(NodeGate(Callers(peers, *limiters)), refused)
    # The gate counts each limit separately, and gives reasons; the sum bounds unread calls.
    limits = (strangers.calls, strangers.streams, nodes.calls, nodes.streams)
    return Bounds(gate, sum(limits) if all(limits) else None)


def streams_of_connection(strangers: StrangerLimits, nodes: NodeLimits) -> int:
    """Return how many calls and streams one connection may have open; 0 for no limit.

    One connection has no more than its address may have, and some calls beside them.
    """
    if not strangers.streams_of_one or not nodes.streams_of_one:
        return 0
    return max(strangers.streams_of_one, nodes.streams_of_one) + _CALLS_BESIDE_STREAMS


async def _admitted(admitted: Admitted, requests: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for request in requests:
        admitted.check()
        admitted.limiter.admit(admitted.name)
        yield request
