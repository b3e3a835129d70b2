"""The gate before a node's methods, on a server of its own whose methods do little."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import fields
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from chainkit.service.grpc_methods import Methods
from chainkit.service.node_token import TokenFault
from chainkit.service.refusals import InvalidRequest
from chainkit_node.peers.directory import Listing
from chainkit_node.serving import requests
from chainkit_node.serving.callers import Peers
from chainkit_node.serving.gate import server_bounds
from chainkit_node.settings import NodeLimits, StrangerLimits
from support.network.grpc_server import GrpcServer

SERVICE = "service"
HEALTH = "/grpc.health.v1.Health"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SECONDS = 10.0

Metadata = Sequence[tuple[str, str]]


class Served:
    """A server with one method of each sort, and a connection to it."""

    def __init__(
        self,
        limits: StrangerLimits,
        clock: Callable[[], float],
        nodes: NodeLimits | None = None,
    ) -> None:
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.refused_tokens: Counter[TokenFault] = Counter()
        self.listing = Listing({}, None, None)
        self.now = 0.0
        """The time of day."""
        self.port = 0
        self.waits = asyncio.Event()
        methods = Methods(
            {
                "Echo": self._echo,
                "Wait": self._wait,
                "Count": self._count,
                "PublishPayerEnvelopes": self._echo,
            },
            {"Stream": self._stream},
        )
        names = ("Echo", "Wait", "Count", "PublishPayerEnvelopes", "Stream")
        peers = Peers(lambda: self.listing, lambda: self.now, self._refused_token)
        bounds = server_bounds(limits, nodes or NodeLimits(), peers, self._refused, clock)
        self.server = GrpcServer(methods, {SERVICE: names}, bounds)

    async def unary(self, method: str, request: bytes = b"", metadata: Metadata = ()) -> bytes:
        call = self.channel.unary_unary(path(method))
        answer: bytes = await call(request, timeout=SECONDS, metadata=metadata)
        return answer

    def stream(self, method: str = "Stream", request: bytes = b"", metadata: Metadata = ()) -> Any:
        call = self.channel.unary_stream(path(method))
        return call(request, timeout=SECONDS, metadata=metadata)

    def connect(self) -> grpc.aio.Channel:
        options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
        return grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", options)

    async def start(self) -> None:
        self.port = await self.server.start("127.0.0.1:0")
        await self.server.say_ready(True)
        self.channel = self.connect()

    async def stop(self) -> None:
        await self.channel.close()
        await self.server.stop(0)

    def _refused(self, method: str, code: str) -> None:
        self.refusals[method, code] += 1

    def _refused_token(self, fault: TokenFault) -> None:
        self.refused_tokens[fault] += 1

    async def _echo(self, data: bytes) -> bytes:
        if data == b"bad":
            raise InvalidRequest("request", "a good one", "a bad one")
        return data

    async def _count(self, data: bytes) -> bytes:
        requests.check_count("letters", data.count(b"a"), 1000)
        return data

    async def _wait(self, data: bytes) -> bytes:
        await self.waits.wait()
        return data

    async def _stream(self, data: bytes) -> AsyncIterator[bytes]:
        yield data
        if not data:
            await self.waits.wait()
        for _ in range(2):
            yield data


def path(method: str) -> str:
    return method if method.startswith("/") else f"/{SERVICE}/{method}"


def serving(
    limits: StrangerLimits,
    story: Callable[[Served], Coroutine[Any, Any, None]],
    clock: Callable[[], float] = time.monotonic,
    nodes: NodeLimits | None = None,
) -> None:
    async def run() -> None:
        served = Served(limits, clock, nodes)
        await served.start()
        try:
            await story(served)
        finally:
            await served.stop()

    asyncio.run(run())


async def refused(call: Any) -> str:
    """Return the words of a refusal because of too much."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(caught.value.details())


def test_requests__above_the_rate_of_an_address__are_refused_typed_and_counted() -> None:
    async def story(served: Served) -> None:
        for _ in range(3):
            assert await served.unary("Echo", b"a") == b"a"
        words = await refused(served.unary("Echo"))
        assert "requests: expected at most 1 a second from one address, got more" in words
        await refused(served.stream().read())
        await refused(served.unary(f"{HEALTH}/Check"))
        assert served.refusals == {
            (method, "RESOURCE_EXHAUSTED"): 1 for method in ("Echo", "Stream", "Check")
        }

    serving(StrangerLimits(requests_per_second=1, request_burst=3), story, lambda: 0)


def test_requests__within_one_reflection_stream__count_like_calls() -> None:
    async def story(served: Served) -> None:
        call = served.channel.stream_stream(REFLECTION)(timeout=SECONDS)
        for _ in range(3):
            await call.write(b"")
            assert await call.read()
        await call.write(b"")
        await refused(call.read())

    serving(StrangerLimits(requests_per_second=1, request_burst=4), story, lambda: 0)


def test_requests__without_limits__are_all_answered() -> None:
    async def story(served: Served) -> None:
        for _ in range(100):
            await served.unary("Echo")

    limits = StrangerLimits(**dict.fromkeys((field.name for field in fields(StrangerLimits)), 0))
    serving(limits, story)


def test_refusal__of_a_method_itself__is_counted_with_its_code() -> None:
    async def story(served: Served) -> None:
        with pytest.raises(grpc.aio.AioRpcError, match="expected a good one, got a bad one"):
            await served.unary("Echo", b"bad")
        with pytest.raises(grpc.aio.AioRpcError):
            await served.unary(f"{HEALTH}/Check", b"\n\x04none")
        # A library's own refusal is counted after it was sent.
        expected = {("Echo", "INVALID_ARGUMENT"): 1, ("Check", "NOT_FOUND"): 1}
        async with asyncio.timeout(SECONDS):
            while served.refusals != expected:
                await asyncio.sleep(0.01)

    serving(StrangerLimits(), story)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            StrangerLimits(streams_of_one=2),
            "open streams: expected at most 2 from one address, got more",
        ),
        (StrangerLimits(streams=2), "open streams: expected at most 2 in all, got more"),
    ],
)
def test_streams__one_too_many__is_refused_until_another_is_closed(
    limits: StrangerLimits, words: str
) -> None:
    async def story(served: Served) -> None:
        watch = served.stream(f"{HEALTH}/Watch")
        first = health_pb2.HealthCheckResponse.FromString(await watch.read())
        assert first.status == first.SERVING
        stream = served.stream()
        assert await stream.read() == b""
        assert words in await refused(served.stream().read())
        assert await served.unary("Echo", b"beside") == b"beside"

        watch.cancel()
        async with asyncio.timeout(SECONDS):
            while await is_refused(another := served.stream()):
                pass
        assert not another.done()

    serving(limits, story)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            StrangerLimits(filter_bytes_of_one=25),
            "bytes of streams' requests: expected at most 25 from",
        ),
        (StrangerLimits(filter_bytes=25), "bytes of streams' requests: expected at most 25 in all"),
    ],
)
def test_streams__with_too_large_filters__are_refused_also_together(
    limits: StrangerLimits, words: str
) -> None:
    async def story(served: Served) -> None:
        assert words in await refused(served.stream(request=bytes(26)).read())
        watches = [served.stream(f"{HEALTH}/Watch", b"\n\x0a" + b"a" * 10) for _ in range(2)]
        for watch in watches:
            assert await watch.read()
        assert words in await refused(served.stream(f"{HEALTH}/Watch", b"\n\x01a").read())

    serving(limits, story)


async def is_refused(call: Any) -> bool:
    """Tell whether a stream has no room yet: the server learns of the other's end a bit later."""
    try:
        await call.read()
    except grpc.aio.AioRpcError:
        return True
    return False


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (StrangerLimits(calls_of_one=2), "calls at a time: expected at most 2 from one address"),
        (StrangerLimits(calls=2), "calls at a time: expected at most 2 in all"),
    ],
)
def test_calls__too_many_at_a_time__are_refused_until_one_is_answered(
    limits: StrangerLimits, words: str
) -> None:
    async def story(served: Served) -> None:
        waiting = [asyncio.ensure_future(served.unary("Wait", b"a")) for _ in range(3)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert words in await refused(done.pop())
        served.waits.set()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert answers.count(b"a") == 2
        assert await served.unary("Echo", b"a") == b"a"

    serving(limits, story)


def test_answers__more_bytes_than_the_rate__slow_a_stream_down_and_refuse_a_call() -> None:
    async def story(served: Served) -> None:
        begin = time.monotonic()
        assert [each async for each in served.stream(request=bytes(30_000))] == [bytes(30_000)] * 3
        # Two frames fit into the first second's bytes or go below zero, and the third waits.
        assert time.monotonic() - begin >= 0.15
        await served.unary("Echo", bytes(200_000))
        words = await refused(served.unary("Echo", b"a"))
        assert "answers: expected at most 50000 bytes a second" in words

    serving(StrangerLimits(answer_bytes_per_second=50_000), story)


def test_publishes__more_bytes_than_the_rate_of_an_address__are_refused_and_reading_goes_on() -> (
    None
):
    async def story(served: Served) -> None:
        publish = "PublishPayerEnvelopes"
        for _ in range(5):
            # Stored nothing: such bytes do not count.
            with pytest.raises(grpc.aio.AioRpcError):
                await served.unary(publish, b"bad")
        assert await served.unary(publish, b"a" * 12) == b"a" * 12
        words = await refused(served.unary(publish, b"a"))
        assert "publish: expected at most 1 bytes a second from one address, got more" in words
        assert await served.unary("Echo", b"a") == b"a"

    limits = StrangerLimits(publish_bytes_per_second=1, publish_burst_bytes=10)
    serving(limits, story, lambda: 0)


@pytest.mark.parametrize("request_bytes", [b"a" * 100, b"b" * (10 * 16384)], ids=["parts", "bytes"])
def test_requests__of_many_parts_or_bytes__count_as_several(request_bytes: bytes) -> None:
    async def story(served: Served) -> None:
        for _ in range(2):
            assert await served.unary("Count", request_bytes) == request_bytes
        await refused(served.unary("Count", b"a"))

    serving(StrangerLimits(requests_per_second=1, request_burst=15), story, lambda: 0)
