"""Calls with bodies of their own, written to HTTP/2 connections as frames that were made before.

A gateway answers the same payload from its journal, and h2load has one body for all calls. gRPC's
library costs a caller as much as a node, so that this load knows no more of HTTP/2 than it needs:
the same header block for each call, windows that never fill, and the flag that ends an answer.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.node.load import Rate
from chainkit.errors import MalformedAnswer

_CONNECTIONS: Final = 10
_MOST_SECONDS: Final = 120.0
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_HEAD_BYTES: Final = 9
_LARGEST: Final = 2**31 - 1
_FIRST_WINDOW: Final = 65_535
_INITIAL_WINDOW: Final = 4
_POST, _HTTP, _AUTHORITY, _PATH, _CONTENT_TYPE = b"\x83", b"\x86", b"\x01", b"\x04", b"\x0f\x10"
"""Places in HPACK's static table: two whole fields, and three names."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(method: str) -> bytes:
    """Return the header block of a gRPC call, which leaves nothing in the other side's table."""
    te = b"\x00" + _text(b"te") + _text(b"trailers")
    fields = (_AUTHORITY + _text(b"localhost"), _PATH + _text(method.encode()))
    return b"".join((_POST, _HTTP, *fields, _CONTENT_TYPE + _text(b"application/grpc"), te))


def _text(value: bytes) -> bytes:
    return bytes([len(value)]) + value


class _Connection(asyncio.Protocol):
    """Calls one after the other from each of its places, until no body is left."""

    def __init__(self, block: bytes, bodies: Iterator[bytes], places: int, rate: Rate) -> None:
        self._block, self._bodies, self._places, self._rate = block, bodies, places, rate
        self._began: dict[int, float] = {}
        self._next_stream = 1
        self._held = b""
        self.ended = asyncio.get_running_loop().create_future()
        self._lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        settings = struct.pack(">HI", _INITIAL_WINDOW, _LARGEST)
        window = struct.pack(">I", _LARGEST - _FIRST_WINDOW)
        begin = (frame(_SETTINGS, 0, 0, settings), frame(_WINDOW, 0, 0, window))
        transport.write(b"".join((_PREFACE, *begin, *(self._call() for _ in range(self._places)))))

    def data_received(self, data: bytes) -> None:
        data, at, answers = self._held + data, 0, []
        while len(data) - at >= _HEAD_BYTES:
            end = at + _HEAD_BYTES + int.from_bytes(data[at : at + 3])
            if end > len(data):
                break
            stream = int.from_bytes(data[at + 5 : at + _HEAD_BYTES])
            answers.append(self._answer(data[at + 3], data[at + 4], stream, data[at + 9 : end]))
            at = end
        self._held = data[at:]
        self._transport.write(b"".join(answers))
        if not self._began and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set_result(None)
        if not self.ended.done():
            self.ended.set_exception(MalformedAnswer("connection", "to stay", error or "its end"))

    async def close(self) -> None:
        self._transport.close()
        await self._lost

    def _answer(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            self._rate.taken.append(time.perf_counter() - self._began.pop(stream))
            self._rate.count += 1
            return self._call()
        if kind in (_RESET, _GO_AWAY):
            self._transport.abort()
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            return frame(kind, _ACK, 0, payload if kind == _PING else b"")
        return b""

    def _call(self) -> bytes:
        body = next(self._bodies, None)
        if body is None:
            return b""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._began[stream] = time.perf_counter()
        message = struct.pack(">BI", 0, len(body)) + body
        begin = frame(_HEADERS, _END_HEADERS, stream, self._block)
        return begin + frame(_DATA, _END_STREAM, stream, message)


async def call_each(port: int, method: str, bodies: Sequence[bytes], callers: int) -> Rate:
    """Call a method once with each body, and time the calls. An answer's content is not looked at.

    Raises MalformedAnswer where a call is cut, and TimeoutError after two minutes.
    """
    rate, block, waiting = Rate(), headers(method), iter(bodies)
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    async with asyncio.timeout(_MOST_SECONDS):
        made = [
            await loop.create_connection(
                lambda: _Connection(block, waiting, callers // _CONNECTIONS, rate),
                *("127.0.0.1", port),
            )
            for _ in range(_CONNECTIONS)
        ]
        await asyncio.gather(*(connection.ended for _, connection in made))
    rate.seconds = time.perf_counter() - began
    for _, connection in made:
        await connection.close()
    return rate
