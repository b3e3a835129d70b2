"""gRPC's framing over HTTP/2 as bytes and headers, without a connection (gRPC's PROTOCOL-HTTP2).

A message has a prefix of five bytes: whether it is compressed, which no message here is, and its
length. A call ends with the headers ``grpc-status``, ``grpc-message`` and the status with details.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final
from urllib.parse import quote

import grpc

from chainkit.service.grpc_methods import status_of
from chainkit.service.refusals import STATUS_KEY, InvalidRequest, OverShare, Refusal

Headers = list[tuple[bytes, bytes]]

_PREFIX: Final = Struct(">?I")
_PART_BYTES: Final = 16 << 10
_LARGE_BYTES: Final = 1 << 20
"""Python lets other threads run while it joins so much."""
_TIMEOUT: Final = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_AS_THEY_ARE: Final = "".join(chr(each) for each in range(0x20, 0x7F) if chr(each) != "%")
_OK: Final = (b"grpc-status", b"0")


class Compressed(Refusal):
    """A message is compressed, which no client needs to do."""

    is_of_caller = True
    code = grpc.StatusCode.UNIMPLEMENTED


class TooLarge(OverShare):
    """A message is longer than its method's may be."""


class MessageReader:
    """Cuts a body into messages, whichever pieces the body comes in.

    The pieces of a message stay apart until all of them are there: a buffer that grows with each
    piece was copied ten times on its way to 24 MiB, on the event loop.
    """

    def __init__(self, most_bytes: int) -> None:
        """Take the length of the longest message."""
        self._most_bytes = most_bytes
        self._prefix = b""
        self._missing: int | None = None
        """Bytes of the message that have not come; None before its whole prefix."""
        self._parts: list[bytes] = []
        self._small = bytearray()
        """The last pieces, where each was too short for an object of its own."""

    @property
    def waiting_bytes(self) -> int:
        """The bytes of the message that is not yet whole."""
        return len(self._prefix) + sum(map(len, self._parts)) + len(self._small)

    def feed(self, piece: bytes) -> Iterator[list[bytes]]:
        """Yield the messages that a piece completes, each one in parts for ``joined``.

        Raises Compressed, and TooLarge for a message that is too long, before it has come.
        """
        start = 0
        while True:
            if self._missing is None:
                end = start + _PREFIX.size - len(self._prefix)
                self._prefix += piece[start:end]
                if len(self._prefix) < _PREFIX.size:
                    return
                start, self._missing = end, self._length()
            part = piece[start : start + self._missing]
            self._keep(part)
            start += len(part)
            self._missing -= len(part)
            if self._missing:
                return
            yield self._taken()

    def finish(self) -> None:
        """Take note of the body's end. Raises InvalidRequest where a message is not whole."""
        if self._prefix:
            raise InvalidRequest("request", "whole messages", "the beginning of one")

    def drop(self) -> None:
        """Forget what came of a message that nobody reads any more."""
        self._parts.clear()
        self._small.clear()

    def _length(self) -> int:
        length: int
        is_compressed, length = _PREFIX.unpack(self._prefix)
        if is_compressed:
            raise Compressed("request", "a message without compression", "another one")
        if length > self._most_bytes:
            raise TooLarge("request", f"at most {self._most_bytes} bytes", length)
        return length

    def _keep(self, part: bytes) -> None:
        if len(part) < _PART_BYTES:
            self._small += part
            if len(self._small) < _PART_BYTES:
                return
            part = b""
        if self._small:
            self._parts.append(bytes(self._small))
            self._small.clear()
        if part:
            self._parts.append(part)

    def _taken(self) -> list[bytes]:
        # A message of one part is joined without a copy.
        parts = [*self._parts, bytes(self._small)] if self._small else self._parts
        self._prefix, self._missing, self._parts = b"", None, []
        self._small.clear()
        return parts


async def joined(parts: list[bytes]) -> bytes:
    """Return a message, and empty the list of its parts; the event loop copies no large one."""
    if sum(map(len, parts)) < _LARGE_BYTES:
        message = b"".join(parts)
    else:
        message = await asyncio.to_thread(b"".join, parts)
    parts.clear()
    return message


def framed(message: bytes) -> bytes:
    """Return a message with its prefix."""
    return _PREFIX.pack(False, len(message)) + message


def deadline_seconds(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Return the time that a caller gives a call; None where the caller names no readable time."""
    for key, value in headers:
        if key == b"grpc-timeout":
            match = _TIMEOUT.fullmatch(value)
            return None if match is None else int(match[1]) * _UNITS[match[2]]
    return None


def metadata_of(headers: Iterable[tuple[bytes, bytes]]) -> Sequence[tuple[str, str | bytes]]:
    """Return headers as gRPC's metadata: values of keys that end with ``-bin`` are bytes.

    A value that is no base64 is left out.
    """
    metadata: list[tuple[str, str | bytes]] = []
    for key, value in headers:
        name = key.decode("latin-1")
        if not name.endswith("-bin"):
            metadata.append((name, value.decode("latin-1")))
            continue
        try:
            metadata.append(
                (name, base64.b64decode(value + b"=" * (-len(value) % 4), validate=True))
            )
        except binascii.Error:
            continue
    return metadata


def good_end() -> Headers:
    """Return the trailers of a call that was answered."""
    return [_OK]


def bad_end(refusal: Refusal) -> Headers:
    """Return the trailers of a refusal: code, words, and the status with details."""
    details = base64.b64encode(status_of(refusal)).rstrip(b"=")
    return [
        (b"grpc-status", str(refusal.code.value[0]).encode()),
        (b"grpc-message", quote(str(refusal), _AS_THEY_ARE).encode()),
        (STATUS_KEY.encode(), details),
    ]
