"""Two builds in one run: both nodes run all the time, and are measured in turn.

A node stores the same payload as often as it comes, so that h2load can publish to it. A gateway
publishes a payload once: it gets a load with a body for each call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.node import load
from benchmarks.node.h2load import call_often
from benchmarks.node.load import Rate
from benchmarks.node.network import Measured, MeasuredGateway, measured_gateway
from benchmarks.node.payloads import client_envelopes, payer_envelopes, topics
from benchmarks.node.replay import call_each
from benchmarks.node.rounds import Rounds, Row, in_turn
from benchmarks.usage import server_anonymous_mebibytes, server_cpu_seconds, server_mebibytes
from chainkit.errors import MalformedAnswer
from chainkit.protocol.methods import PUBLISH_CLIENT_ENVELOPES, PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.proto.payer_api_pb2 import PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes

_CALLERS: Final = 100
_PERCENT: Final = 100
_SETTLE_SHARE: Final = 0.1
_ATTEMPTS: Final = 3
"""gRPC's server in Python cancels a publish now and then where the machine is busy."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    rounds: int = 5
    publishes: int = 6_000
    gateway_publishes: int = 1_500
    streams: int = 1_000
    streamed_per_second: int = 500
    streamed_seconds: float = 5.0
    idle_seconds: float = 30.0


QUICK: Final = Sizes(1, 300, 100, 100, 100, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Pair:
    """A node of this build and one of the former build."""

    now: Measured
    before: Measured

    def __iter__(self) -> Iterator[Measured]:
        """Yield both."""
        yield self.now
        yield self.before


@dataclass(frozen=True, slots=True)
class Idle:
    """Both nodes without work, this build's first."""

    shares: tuple[float, float]
    """In percent of a core."""
    mebibytes: tuple[float, float]
    anonymous_mebibytes: tuple[float, float]
    """The part of this memory that is no file's."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Everything that was measured of two builds."""

    alone: Idle
    """After their start."""
    with_streams: Idle
    publishing: Rounds
    reading: Rounds
    streaming: Rounds
    gateways: Rounds


async def beside(pair: Pair, sizes: Sizes) -> Beside:
    """Measure two nodes that have just started, and then gateways in front of them.

    Raises MalformedAnswer where a node did not store what was published.
    """
    alone, with_streams = [await _idle(pair, sizes, count) for count in (0, sizes.streams)]
    publishing = await in_turn(sizes.rounds, partial(_published, sizes), *pair)
    # PostgreSQL marks the rows when they are read for the first time.
    await in_turn(1, _read, *pair)
    reading = await in_turn(sizes.rounds, _read, *pair)
    streaming = await in_turn(sizes.rounds, partial(_streamed, sizes), *pair)
    with ExitStack() as stack:
        gateways = [stack.enter_context(measured_gateway(node)) for node in pair]
        through = await in_turn(sizes.rounds, partial(_published_through, sizes), *gateways)
    return Beside(alone, with_streams, publishing, reading, streaming, through)


async def _idle(pair: Pair, sizes: Sizes, count: int) -> Idle:
    """Look at both nodes over the same time, while each has so many streams without news."""
    async with AsyncExitStack() as stack:
        for node in pair:
            await stack.enter_async_context(load.open_streams(node.node_port, count))
        await asyncio.sleep(_SETTLE_SHARE * sizes.idle_seconds)
        spent, began = [server_cpu_seconds(node.pid) for node in pair], time.perf_counter()
        await asyncio.sleep(sizes.idle_seconds)
        elapsed = time.perf_counter() - began
        shares = [
            _PERCENT * (server_cpu_seconds(node.pid) - before) / elapsed
            for node, before in zip(pair, spent, strict=True)
        ]
        memory = [server_mebibytes(node.pid) for node in pair]
        anonymous = [server_anonymous_mebibytes(node.pid) for node in pair]
    return Idle(*((now, before) for now, before in (shares, memory, anonymous)))


async def _published(sizes: Sizes, node: Measured, _: int) -> Row:
    """Publish with 100 calls at a time."""
    [payload] = payer_envelopes(topics(1, seed=5), node.node_id)
    request = Envelopes(envelopes=[payload]).SerializeToString()
    url = f"http://127.0.0.1:{node.node_port}{PUBLISH_PAYER_ENVELOPES}"
    before, spent = node.stored(), server_cpu_seconds(node.pid)
    rate = call_often(node.folder, url, request, sizes.publishes, _CALLERS)
    return _row(rate, node, before.envelopes, server_cpu_seconds(node.pid) - spent)


async def _published_through(sizes: Sizes, gateway: MeasuredGateway, number: int) -> Row:
    """Publish through a gateway, with 100 calls at a time, each with a payload of its own."""
    some = topics(sizes.gateway_publishes, seed=100 + number)
    bodies = [
        PublishClientEnvelopesRequest(envelopes=[each]).SerializeToString()
        for each in client_envelopes(some)
    ]
    before, spent = gateway.node.stored(), server_cpu_seconds(gateway.pid)
    rate = await call_each(gateway.port, PUBLISH_CLIENT_ENVELOPES, bodies, _CALLERS)
    return _row(rate, gateway.node, before.envelopes, server_cpu_seconds(gateway.pid) - spent)


def _row(rate: Rate, node: Measured, before: int, spent: float) -> Row:
    added = node.stored().envelopes - before
    if added != rate.count:
        raise MalformedAnswer(f"{node.build.name}", f"{rate.count} envelopes more", added)
    return {
        "per_s": rate.per_second,
        "p99_ms": 1000 * rate.percentile(0.99),
        "cpu_us": 1_000_000 * spent / rate.count,
    }


async def _read(node: Measured, _: int) -> Row:
    """Let one reader take all that is stored."""
    stored = node.stored()
    elapsed, _frame = await load.catch_up(node.node_port, node.node_id, stored.streamed_bytes)
    return {"per_s": stored.envelopes / elapsed}


async def _streamed(sizes: Sizes, node: Measured, number: int) -> Row:
    """Publish at a steady rate while each topic has a stream."""
    for attempt in range(_ATTEMPTS):
        # New topics each time: a stream that finds nothing stored is open with its second frame.
        some = topics(sizes.streams, seed=200 + _ATTEMPTS * number + attempt)
        with suppress(ExceptionGroup):
            rate = await load.publish_to_streams(
                *(node.node_port, some, payer_envelopes(some, node.node_id)),
                *(sizes.streamed_per_second, sizes.streamed_seconds),
            )
            break
    else:
        raise MalformedAnswer(node.build.name, "answers to all publishes", "none to some")
    return {"p50_ms": 1000 * rate.percentile(0.5), "p99_ms": 1000 * rate.percentile(0.99)}
