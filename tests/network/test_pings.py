"""Connections that say nothing but HTTP/2 pings stay open (RFC 9113, 6.7), with and without a call.

grpcio's server closes a connection on which three pings came too early, with no data between them.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack
from typing import Self
from urllib.parse import urlsplit

from localnet.network import Network

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0x0, 0x1, 0x4, 0x6, 0x7
ACK, END_STREAM, END_HEADERS = 0x1, 0x1, 0x4
PINGS = 6
INTERVAL = 1.1
"""Seconds; docs/node.md promises one."""
SECONDS = 30.0


def literal(name: str, value: str) -> bytes:
    """Write a header field without an index or Huffman's code (RFC 7541, 6.2.2)."""
    return b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in (name, value))


WATCH_HEALTH = b"".join(
    literal(name, value)
    for name, value in (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.health.v1.Health/Watch"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
)


class Connection:
    """An HTTP/2 connection that sends only what a test says."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._socket = socket.create_connection((place.hostname, place.port), SECONDS)
        self._reader = self._socket.makefile("rb")
        self._socket.sendall(PREFACE)
        self._send(SETTINGS, 0, 0, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._socket.close()

    def watch_health(self) -> None:
        """Open a stream on which the server says nothing more once it has told its state."""
        self._send(HEADERS, END_HEADERS, 1, WATCH_HEALTH)
        self._send(DATA, END_STREAM, 1, bytes(5))
        self._receive_until(DATA)

    def ping(self) -> None:
        """Send a ping, and return when it is answered."""
        self._send(PING, 0, 0, bytes(8))
        self._receive_until(PING)

    def _send(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        header = struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream)
        self._socket.sendall(header + payload)

    def _receive_until(self, wanted: int) -> None:
        while True:
            header = self._reader.read(9)
            assert len(header) == 9, "the server closed the connection"
            size, kind, flags = int.from_bytes(header[:3], "big"), header[3], header[4]
            payload = self._reader.read(size)
            assert kind != GOAWAY, payload
            if kind in (SETTINGS, PING) and not flags & ACK:
                self._send(kind, ACK, 0, payload if kind == PING else b"")
            elif kind == wanted:
                return


def test_pings__every_second_on_silent_connections__are_all_answered(network: Network) -> None:
    with ExitStack() as stack:
        connections = []
        for url in (network.node_url, network.gateway_url):
            idle, watching = (stack.enter_context(Connection(url)) for _ in range(2))
            watching.watch_health()
            connections += [idle, watching]

        for number in range(PINGS):
            # The clock of a server starts when a ping arrives, which is before its answer does.
            time.sleep(INTERVAL if number else 0.0)
            for each in connections:
                each.ping()
