"""Nodes that lie over real gRPC: each has a key and an entry in the registry, and one lie.

They run on one event loop in a thread of the test, keep their own logs in memory, and hold nothing
of others'. Readers are told apart by their tokens, as the specification has nodes show them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Self

from chainkit.protocol.log_ranges import LogRange
from chainkit.protocol.proto import message_api_pb2, node_api_pb2
from chainkit.protocol.stored_envelopes import written_envelopes
from chainkit.service.grpc_methods import (
    Bounds,
    Caller,
    CallerStreaming,
    CallerUnary,
    Methods,
    Requests,
)
from chainkit.service.node_token import NODE_TOKEN_KEY, read_token
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from support.network.api import LOG, REPLICATION
from support.network.grpc_server import GrpcServer
from support.network.loop_thread import LoopThread
from support.network.memory_ranges import memory_ranges
from support.network.originator import BEGIN_NS, SECOND_NS, MemoryLog, Originator
from support.network.simulation.lies import Liar, Lie, page, signed

HEARTBEAT_SECONDS = 15.0
DRIP_SECONDS = 2.0
STALL_SECONDS = 3600.0

_READER: ContextVar[int] = ContextVar("reader", default=0)


class FalseNode:
    """One node that lies; ``begin`` tells it who it is."""

    def __init__(self, liar: Liar, key: SigningKey) -> None:
        self.liar = liar
        self.key = key
        self.url = ""
        self.node_id = 0
        self.log = MemoryLog()
        self._changed = asyncio.Event()

    def sign(self, count: int) -> None:
        """Sign envelopes, and tell the streams; on the loop's thread."""
        signs = Originator(self.node_id, self.key)
        for _ in range(count):
            seconds = (time.time_ns() - BEGIN_NS) / SECOND_NS
            envelope = signed(signs, self.liar, len(self.log) + 1, seconds)
            self.log.store(signs.received(envelope))
        self._changed.set()
        self._changed = asyncio.Event()

    def keep(self, envelope: bytes) -> None:
        """Hold an envelope that it signed elsewhere, and tell the streams; on the loop's thread."""
        self.log.store(Originator(self.node_id, self.key).received(envelope))
        self._changed.set()
        self._changed = asyncio.Event()

    async def subscribe_envelopes(self, data: bytes) -> AsyncIterator[bytes]:
        """Stream its log, as its lie has it, to whom it knows by a token."""
        reader_id = _READER.get()
        request = message_api_pb2.SubscribeEnvelopesRequest.FromString(data)
        originator_id, after_id = _place(request.query)
        await self._behave()
        yield b""
        while True:
            rows: list[bytes] = []
            if originator_id == self.node_id:
                rows, after_id = page(self.log, self.liar, reader_id, after_id)
            if rows:
                yield written_envelopes(rows)
                continue
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await changed.wait()
                    continue
            yield b""

    async def query_envelopes(self, data: bytes) -> bytes:
        """Answer a page of its log, as its lie has it."""
        request = message_api_pb2.QueryEnvelopesRequest.FromString(data)
        originator_id, after_id = _place(request.query)
        await self._behave()
        if originator_id != self.node_id:
            return b""
        rows, _ = page(self.log, self.liar, _READER.get(), after_id)
        return written_envelopes(rows[: request.limit])

    async def compare_ranges(self, data: bytes) -> bytes:
        """Answer as an honest node that has all of its own log."""
        request = node_api_pb2.CompareRangesRequest.FromString(data)
        await self._behave()
        log = self.log if request.originator_node_id == self.node_id else MemoryLog()
        ranges = [LogRange(each.level, each.number) for each in request.ranges]
        through = request.through_sequence_id
        held = memory_ranges(log, request.originator_node_id, through, ranges)
        answer = node_api_pb2.CompareRangesResponse(highest_sequence_id=held.highest)
        for content in held.contents:
            answer.contents.add(digests=content.digests, expired=content.expired)
        return answer.SerializeToString()

    async def _behave(self) -> None:
        if self.liar.lie is Lie.STALLS:
            await asyncio.sleep(STALL_SECONDS)
        elif self.liar.lie is Lie.DRIPS:
            await asyncio.sleep(DRIP_SECONDS)
        elif self.liar.lie is Lie.FAILS:
            raise NotReady("log", "an answer", "an error")


class FalseNodes:
    """Serves such nodes from its construction until the end of the block."""

    def __init__(self) -> None:
        self._loop = LoopThread("liars")
        self._servers: list[GrpcServer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.end(self._end())

    def add(self, liar: Liar, key: SigningKey, register: Callable[[SigningKey, str], int]) -> Any:
        """Serve a node, and have the registry list it; it has signed nothing yet."""
        node = FalseNode(liar, key)
        self._loop.do(self._serve(node))
        node.node_id = register(key, node.url)
        return node

    def sign(self, node: FalseNode, count: int = 1) -> None:
        """Have a node sign envelopes."""
        self._loop.do(_at_once(lambda: node.sign(count)))

    def keep(self, node: FalseNode, envelope: bytes) -> None:
        """Have a node serve an envelope that it signed elsewhere."""
        self._loop.do(_at_once(lambda: node.keep(envelope)))

    async def _serve(self, node: FalseNode) -> None:
        methods = Methods(
            unary={
                "QueryEnvelopes": node.query_envelopes,
                "CompareRanges": node.compare_ranges,
            },
            streams={"SubscribeEnvelopes": node.subscribe_envelopes},
        )
        services = {
            REPLICATION: ("QueryEnvelopes", "SubscribeEnvelopes"),
            LOG: ("CompareRanges",),
        }
        server = GrpcServer(methods, services, Bounds(_Readers()))
        self._servers.append(server)
        node.url = f"http://127.0.0.1:{await server.start('127.0.0.1:0')}"

    async def _end(self) -> None:
        await asyncio.gather(*(each.stop(0.0) for each in self._servers))


class _Readers:
    """Remembers which node asks, for the task that answers."""

    def unary(self, method: str, inner: CallerUnary) -> CallerUnary:
        async def answer(request: bytes, caller: Caller) -> bytes:
            _remember(caller)
            return await inner(request, caller)

        return answer

    def streaming(self, method: str, inner: CallerStreaming) -> CallerStreaming:
        async def answer(requests: Requests, caller: Caller) -> AsyncIterator[bytes]:
            _remember(caller)
            async for frame in inner(requests, caller):
                yield frame

        return answer


def _remember(caller: Caller) -> None:
    token = dict(caller.metadata).get(NODE_TOKEN_KEY)
    _READER.set(0 if token is None else read_token(str(token)).subject)


def _place(query: message_api_pb2.EnvelopesQuery) -> tuple[int, int]:
    """Return the originator that a peer asks for, and behind which id; (0, 0) for topics."""
    if not query.originator_node_ids:
        return 0, 0
    [originator_id] = query.originator_node_ids
    return originator_id, query.last_seen.node_id_to_sequence_id[originator_id]


async def _at_once(do: Callable[[], None]) -> None:
    do()
