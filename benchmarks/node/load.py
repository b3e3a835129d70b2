"""The load: asyncio clients in this process, against a server in another."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import grpc

from benchmarks.index.chain import BenchmarkChain
from benchmarks.node.floor_server import FRAMES, SERVICE
from chainkit.protocol.methods import (
    MOST_MESSAGE_BYTES,
    PUBLISH_PAYER_ENVELOPES,
    SUBSCRIBE_ENVELOPES,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import TopicKind

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
    # Each channel has a connection of its own.
    ("grpc.use_local_subchannel_pool", 1),
)
_CHANNELS: Final = 10
_MOST_WAITING: Final = 100
"""Calls at a time of publishes at a steady rate."""
_FRAMES_UNTIL_OPEN: Final = 2
_STREAMS_PER_CHANNEL: Final = 1000
_OPENED_AT_ONCE: Final = 100
_BLOCK_SECONDS: Final = 0.1
"""Between two blocks, so that none is measured while the one before is still followed."""


@dataclass
class Rate:
    """Calls of a while, with how long each took."""

    count: int = 0
    seconds: float = 0.0
    taken: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """How many a second."""
        return self.count / self.seconds

    def percentile(self, share: float) -> float:
        """Seconds within which a share of the calls ended."""
        ordered = sorted(self.taken)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def channel(port: int) -> grpc.aio.Channel:
    """Connect to a server on this machine."""
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS)


async def call_for(seconds: float, callers: int, call: Callable[[], Awaitable[int]]) -> Rate:
    """Let callers call one after the other, each for so many seconds; a call returns its count."""
    rate, began = Rate(), time.perf_counter()
    end = began + seconds

    async def caller() -> None:
        while (start := time.perf_counter()) < end:
            count = await call()
            # Not in one statement: others count while this call is on its way.
            rate.count += count
            rate.taken.append(time.perf_counter() - start)

    await asyncio.gather(*(caller() for _ in range(callers)))
    rate.seconds = time.perf_counter() - began
    return rate


async def echo(port: int, payloads: Sequence[bytes], seconds: float, callers: int) -> Rate:
    """Measure the library's own round trips of one payload."""
    async with channel(port) as connected:
        method: Any = connected.unary_unary(f"/{SERVICE}/Echo")
        requests = itertools.cycle([_request([payload]) for payload in payloads])

        async def call() -> int:
            await method(next(requests))
            return 1

        return await call_for(seconds, callers, call)


async def publish(
    port: int, payloads: Sequence[bytes], seconds: float, callers: int, batch: int = 1
) -> Rate:
    """Measure publishes, ``batch`` payloads to a request."""
    async with channel(port) as connected:
        method: Any = connected.unary_unary(PUBLISH_PAYER_ENVELOPES)
        starts = range(0, len(payloads) - batch + 1, batch)
        requests = itertools.cycle([_request(payloads[start : start + batch]) for start in starts])

        async def call() -> int:
            await method(next(requests))
            return batch

        return await call_for(seconds, callers, call)


async def publish_steadily(
    port: int, payloads: Sequence[bytes], per_second: int, goes_on: Callable[[], bool]
) -> Rate:
    """Measure publishes of one payload, so many a second, for as long as something goes on.

    A call's time begins when the call is due, also where others are waited for first.
    """
    channels = [channel(port) for _ in range(_CHANNELS)]
    methods: list[Any] = [each.unary_unary(PUBLISH_PAYER_ENVELOPES) for each in channels]
    rate, start, sends = Rate(), time.perf_counter(), list[asyncio.Task[None]]()
    waiting = asyncio.Semaphore(_MOST_WAITING)

    async def send(number: int) -> None:
        request = _request([payloads[number % len(payloads)]])
        async with waiting:
            await methods[number % _CHANNELS](request)
        rate.taken.append(time.perf_counter() - start - number / per_second)

    while goes_on():
        await asyncio.sleep(max(0.0, start + rate.count / per_second - time.perf_counter()))
        sends.append(asyncio.create_task(send(rate.count)))
        rate.count += 1
    await asyncio.gather(*sends)
    rate.seconds = time.perf_counter() - start
    for each in channels:
        await each.close()
    return rate


async def stream_floor(port: int, frame: bytes, envelopes: int) -> float:
    """Return how many envelopes a second the library alone streams, in frames like the node's."""
    async with channel(port) as connected:
        method: Any = connected.unary_stream(f"/{SERVICE}/Stream")
        began = time.perf_counter()
        async for _ in method(frame):
            pass
        return FRAMES * envelopes / (time.perf_counter() - began)


async def catch_up(port: int, node_id: int, expected: int) -> tuple[float, bytes]:
    """Return the seconds in which one reader gets so many bytes, and the largest frame.

    Nothing is parsed, as in the floor. Frames have the bytes that answers to publishes had.
    """
    query = message_api_pb2.EnvelopesQuery(originator_node_ids=[node_id])
    request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
    async with channel(port) as connected:
        method: Any = connected.unary_stream(SUBSCRIBE_ENVELOPES)
        size, largest, began = 0, b"", time.perf_counter()
        stream = method(request)
        async for frame in stream:
            largest = max(largest, frame, key=len)
            size += len(frame)
            if size >= expected:
                break
        elapsed = time.perf_counter() - began
        stream.cancel()
    return elapsed, largest


async def publish_to_streams(
    port: int,
    topics: Sequence[bytes],
    payloads: Sequence[bytes],
    per_second: int,
    seconds: float,
    stream_port: int | None = None,
) -> Rate:
    """Measure from a publish's begin to its envelope in the open stream of its topic.

    Each topic has a stream, and nothing stored; payload n belongs to topic n. A stream counts as
    open once it has caught up, of which its second frame tells. The streams may be another node's.
    """
    channels = [channel(port) for _ in range(_CHANNELS)]
    stream_channels = [channel(stream_port or port) for _ in range(_CHANNELS)]
    rate, began = Rate(), {}
    arrived: dict[bytes, asyncio.Queue[float]] = {topic: asyncio.Queue() for topic in topics}
    opened = asyncio.Semaphore(0)

    async def read(number: int, topic: bytes) -> None:
        query = message_api_pb2.EnvelopesQuery(topics=[topic])
        request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
        connected = stream_channels[number % _CHANNELS]
        method: Any = connected.unary_stream(SUBSCRIBE_ENVELOPES)
        frames = 0
        async for frame in method(request):
            frames += 1
            if frames == _FRAMES_UNTIL_OPEN:
                opened.release()
            for _ in Envelopes.FromString(frame).envelopes:
                arrived[topic].put_nowait(time.perf_counter())

    async def send(number: int) -> None:
        topic, connected = topics[number], channels[number % _CHANNELS]
        method: Any = connected.unary_unary(PUBLISH_PAYER_ENVELOPES)
        began[topic] = time.perf_counter()
        await method(_request([payloads[number]]))
        rate.taken.append(await arrived[topic].get() - began[topic])

    readers = [asyncio.create_task(read(*each)) for each in enumerate(topics)]
    try:
        for _ in topics:
            await opened.acquire()
        start = time.perf_counter()
        async with asyncio.TaskGroup() as sends:
            for number in range(int(per_second * seconds)):
                await asyncio.sleep(max(0.0, start + number / per_second - time.perf_counter()))
                sends.create_task(send(number % len(topics)))
        rate.count, rate.seconds = len(rate.taken), time.perf_counter() - start
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        for each in (*channels, *stream_channels):
            await each.close()
    return rate


async def blocks_to_stream(port: int, chain: BenchmarkChain, blocks: int, events: int) -> Rate:
    """Measure from each block to the last of its envelopes in a stream of the chain's originator.

    The time that mining takes counts.
    """
    query = message_api_pb2.EnvelopesQuery(originator_node_ids=[0])
    request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
    rate, began = Rate(), time.perf_counter()
    async with channel(port) as connected:
        method: Any = connected.unary_stream(SUBSCRIBE_ENVELOPES)
        stream = method(request)
        for _ in range(_FRAMES_UNTIL_OPEN):
            await stream.read()
        for _ in range(blocks):
            await asyncio.to_thread(chain.post, events)
            await asyncio.sleep(_BLOCK_SECONDS)
            start, missing = time.perf_counter(), events
            mining = asyncio.create_task(asyncio.to_thread(chain.mine_block))
            while missing:
                missing -= len(Envelopes.FromString(await stream.read()).envelopes)
            rate.taken.append(time.perf_counter() - start)
            await mining
        stream.cancel()
    rate.count, rate.seconds = blocks, time.perf_counter() - began
    return rate


@asynccontextmanager
async def open_streams(port: int, count: int) -> AsyncIterator[None]:
    """Hold streams open that have nothing to tell, each on a topic of its own."""
    channels = [channel(port) for _ in range(-(-count // _STREAMS_PER_CHANNEL))]
    streams: list[Any] = []
    for topic in _topics(count):
        query = message_api_pb2.EnvelopesQuery(topics=[topic])
        request = message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString()
        connected = channels[len(streams) // _STREAMS_PER_CHANNEL]
        method: Any = connected.unary_stream(SUBSCRIBE_ENVELOPES)
        streams.append(method(request))
        if len(streams) % _OPENED_AT_ONCE == 0:
            opened = streams[-_OPENED_AT_ONCE:]
            for _ in range(_FRAMES_UNTIL_OPEN):
                await asyncio.gather(*(stream.read() for stream in opened))
    yield
    for stream in streams:
        stream.cancel()
    for each in channels:
        await each.close()


async def idle_streams(port: int, count: int, resident: Callable[[], float]) -> float:
    """Return by how many MiB a server's memory grows for each open stream without news."""
    before = resident()
    async with open_streams(port, count):
        return (resident() - before) / count


def _topics(count: int) -> Iterator[bytes]:
    return (TopicKind.WELCOME.topic(number.to_bytes(32)) for number in range(count))


def _request(payloads: Sequence[bytes]) -> bytes:
    return Envelopes(envelopes=payloads).SerializeToString()
