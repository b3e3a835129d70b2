"""A client of HTTP/2 that does what no library lets it do, from another address of this machine."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
PIECE = 16_000
WINDOW = 65_535


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class RawConnection:
    """One connection, whose answers a thread reads; use as a context manager."""

    def __init__(
        self, port: int, source: str = "127.0.0.9", settings: Mapping[int, int] | None = None
    ) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 30, (source, 0))
        # As gRPC's own clients do: no frame waits for the answer to the one before.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._changed = threading.Condition()
        self._windows: Counter[int] = Counter({0: WINDOW})
        self._initial = WINDOW
        self._next = 1
        self._over: set[int] = set()
        self._is_closed = False
        self.ended: Counter[int] = Counter()
        """Streams that the server ended, by the kind of the frame."""
        content = b"".join(struct.pack(">HI", *each) for each in (settings or {}).items())
        self._send(PREFACE + frame(SETTINGS, 0, 0, content))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            # The server may have closed it before.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def begin(self, path: str) -> int:
        """Send the headers of a call whose body does not end; return the stream."""
        stream = self._next
        self._next += 2
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "localhost",
            "content-type": "application/grpc",
            "te": "trailers",
            # A proxy's word about the caller, which a server at the edge must not believe.
            "x-forwarded-for": f"198.51.100.{stream % 255}",
        }
        block = b"".join(map(_literal, headers, headers.values()))
        self._send(frame(HEADERS, END_HEADERS, stream, block))
        return stream

    def send(self, stream: int, body: bytes, *, ends: bool) -> None:
        """Send a body, as fast as the server allows; stop where it ends the stream."""
        for start in range(0, len(body), PIECE):
            piece = body[start : start + PIECE]
            if not self._take(stream, len(piece)):
                return
            is_last = ends and start + PIECE >= len(body)
            self._send(frame(DATA, END_STREAM if is_last else 0, stream, piece))

    def wait_for_ends(self, count: int, seconds: float) -> bool:
        """Return whether the server ends so many streams in time, in whichever way."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self.ended.total() >= count, seconds)
            return self.ended.total() >= count

    def _take(self, stream: int, length: int) -> bool:
        """Wait until the server takes so many bytes; return False where it ended the stream."""

        def is_open() -> bool:
            own = self._windows[stream] + self._initial
            is_over = self._is_closed or stream in self._over
            return is_over or min(own, self._windows[0]) >= length

        with self._changed:
            assert self._changed.wait_for(is_open, 30)
            if self._is_closed or stream in self._over:
                return False
            self._windows[stream] -= length
            self._windows[0] -= length
            return True

    def _send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _read(self) -> None:
        try:
            # The server may end the connection at any time, or send nothing for long.
            with suppress(OSError):
                self._read_frames()
        finally:
            with self._changed:
                self._is_closed = True
                self._changed.notify_all()

    def _read_frames(self) -> None:
        with self._socket.makefile("rb") as file:
            while len(head := file.read(9)) == 9:
                length, kind, flags, stream = struct.unpack(">IBBI", b"\0" + head)
                payload = file.read(length)
                with self._changed:
                    self._note(kind, flags, stream, payload)
                    self._changed.notify_all()

    def _note(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            found = dict(struct.iter_unpack(">HI", payload))
            self._initial = found.get(INITIAL_WINDOW_SIZE, self._initial)
            self._send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self._send(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            self._windows[stream] += struct.unpack(">I", payload)[0]
        is_end = kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM)
        if is_end and stream not in self._over:
            self._over.add(stream)
            self.ended[kind] += 1


def _literal(name: str, value: str) -> bytes:
    """Return a header as HPACK's literal that enters no table."""
    return b"\0" + b"".join(bytes([len(each)]) + each.encode() for each in (name, value))
