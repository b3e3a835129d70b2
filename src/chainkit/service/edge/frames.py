"""gRPC's framing over HTTP/2 as bytes and headers, without a connection (gRPC's PROTOCOL-HTTP2).

A message has a prefix of five bytes: whether it is compressed, which no message here is, and its
length. A call ends with the headers ``grpc-status``, ``grpc-message`` and the status with details.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Final
from urllib.parse import quote

import grpc

from chainkit.service.grpc_methods import status_of
from chainkit.service.refusals import STATUS_KEY, InvalidRequest, Overloaded, Refusal

Headers = list[tuple[bytes, bytes]]

_PREFIX: Final = Struct(">?I")
_TIMEOUT: Final = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_AS_THEY_ARE: Final = "".join(chr(each) for each in range(0x20, 0x7F) if chr(each) != "%")
_OK: Final = (b"grpc-status", b"0")


class Compressed(Refusal):
    """A message is compressed, which no client needs to do."""

    code = grpc.StatusCode.UNIMPLEMENTED


class TooLarge(Overloaded):
    """A message is longer than its method's may be."""


class MessageReader:
    """Cuts a body into messages, whichever pieces the body comes in."""

    def __init__(self, most_bytes: int) -> None:
        """Take the length of the longest message."""
        self._most_bytes = most_bytes
        self._rest = bytearray()

    @property
    def waiting_bytes(self) -> int:
        """The bytes of the message that is not yet whole."""
        return len(self._rest)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the messages that a piece completes.

        Raises Compressed, and TooLarge for a message that is too long, before it has come.
        """
        self._rest += piece
        while (end := self._end()) is not None:
            with memoryview(self._rest) as rest:
                message = bytes(rest[_PREFIX.size : end])
            del self._rest[:end]
            yield message

    def finish(self) -> None:
        """Take note of the body's end. Raises InvalidRequest where a message is not whole."""
        if self._rest:
            raise InvalidRequest("request", "whole messages", "the beginning of one")

    def _end(self) -> int | None:
        """Return where the first message ends, None where the message is not whole."""
        if len(self._rest) < _PREFIX.size:
            return None
        is_compressed, length = _PREFIX.unpack_from(self._rest)
        if is_compressed:
            raise Compressed("request", "a message without compression", "another one")
        if length > self._most_bytes:
            raise TooLarge("request", f"at most {self._most_bytes} bytes", length)
        end: int = _PREFIX.size + length
        return end if len(self._rest) >= end else None


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
