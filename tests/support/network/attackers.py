"""Strangers that wear a service out, each kind in a process of its own, from an address of its own.

An attack takes the service's port, its own source address, and how many times; it returns when the
service has ended all of it, or when it has sent all.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from chainkit.protocol.methods import (
    PUBLISH_CLIENT_ENVELOPES,
    PUBLISH_PAYER_ENVELOPES,
    QUERY_ENVELOPES,
    SUBSCRIBE_ENVELOPES,
)
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.edge.frames import framed
from support.network.raw_http2 import INITIAL_WINDOW_SIZE, RawConnection

Attack = Callable[[int, str, int], None]

ADDRESS: Final = "127.0.0.9"
END_SECONDS: Final = 120.0
STREAMS_OF_CONNECTION: Final = 1090
"""A little fewer than the service allows on one connection."""
FIRST_NODE: Final = 100
"""The id of a registry's first node."""
TOPICS: Final = 10_000
LARGE_BYTES: Final = 24 << 20


def entries(tag: bytes, size: int = LARGE_BYTES) -> bytes:
    """Return a message that is nothing but empty entries of one field: 12 million of them."""
    return (tag + b"\0") * (size // (len(tag) + 1))


def empty_topics() -> bytes:
    """Return a query of 24 MiB whose topics are all empty."""
    return _query(entries(b"\x0a"))


def long_cursor() -> bytes:
    """Return a query of 24 MiB whose cursor has 2.7 million entries."""
    count = LARGE_BYTES // 9
    cursor = b"".join(b"\x0a\x07\x08%b\x10\x01" % _four_bytes(each) for each in range(count))
    return _query(b"\x1a" + _varint(len(cursor)) + cursor)


def _four_bytes(number: int) -> bytes:
    low = (0x80 | number >> shift & 0x7F for shift in (0, 7, 14))
    return bytes([*low, (number >> 21) + 1])


def _query(query: bytes) -> bytes:
    return b"\x0a" + _varint(len(query)) + query


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def dear_requests(port: int, address: str, count: int, path: str, message: bytes) -> None:
    """Send large requests, eight at a time, each on a connection of its own."""
    body = framed(message)

    def send(_: int) -> None:
        with suppress(OSError), RawConnection(port, address) as connection:
            connection.send(connection.begin(path), body, ends=True)
            connection.wait_for_ends(1, END_SECONDS)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(count)))


def dear_queries(port: int, address: str, count: int) -> None:
    """Ask with 12 million empty topics, and with a cursor of 2.7 million entries, in turn."""
    for message in (empty_topics(), long_cursor()):
        dear_requests(port, address, count // 2, QUERY_ENVELOPES, message)


def queries_of_1_mib(port: int, address: str, count: int) -> None:
    """Ask with half a million empty topics, as long as a query may be."""
    message = _query(entries(b"\x0a", (1 << 20) - 16))
    dear_requests(port, address, count, QUERY_ENVELOPES, message)


def dear_publishes(port: int, address: str, count: int) -> None:
    """Publish 12 million empty envelopes at once."""
    dear_requests(port, address, count, PUBLISH_PAYER_ENVELOPES, entries(b"\x0a"))


def dear_client_publishes(port: int, address: str, count: int) -> None:
    """Have a gateway publish 12 million empty envelopes at once."""
    dear_requests(port, address, count, PUBLISH_CLIENT_ENVELOPES, entries(b"\x0a"))


def streams_without_request(
    port: int, address: str, count: int, path: str = QUERY_ENVELOPES
) -> None:
    """Begin calls, and send no byte of their requests."""
    left = count
    with ExitStack() as stack:
        connections = []
        while left > 0:
            connection = stack.enter_context(RawConnection(port, address))
            connections.append((connection, min(left, STREAMS_OF_CONNECTION)))
            with suppress(OSError):
                for _ in range(connections[-1][1]):
                    connection.begin(path)
            left -= connections[-1][1]
        for connection, begun in connections:
            connection.wait_for_ends(begun, END_SECONDS)


def endless_bodies(
    port: int, address: str, count: int, path: str = PUBLISH_PAYER_ENVELOPES
) -> None:
    """Begin requests of 25 MiB on one connection, and send all but the last byte of each."""
    body = framed(bytes(LARGE_BYTES))[:-1]
    with RawConnection(port, address) as connection:
        streams = [connection.begin(path) for _ in range(count)]
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda each: _sent(connection, each, body), streams))
        connection.wait_for_ends(count, END_SECONDS)


client_streams_without_request: Attack = partial(
    streams_without_request, path=PUBLISH_CLIENT_ENVELOPES
)
endless_client_bodies: Attack = partial(endless_bodies, path=PUBLISH_CLIENT_ENVELOPES)


def _sent(connection: RawConnection, stream: int, body: bytes) -> None:
    # Where the service reads nothing more, the window never opens.
    with suppress(OSError, AssertionError):
        connection.send(stream, body, ends=False)


def endless_readers(port: int, address: str, count: int) -> None:
    """Ask for the whole log on many streams, and take no byte of the answers."""
    query = message_api_pb2.EnvelopesQuery(originator_node_ids=[FIRST_NODE])
    request = framed(message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString())
    with RawConnection(port, address, {INITIAL_WINDOW_SIZE: 0}) as reader:
        for _ in range(count):
            reader.send(reader.begin(SUBSCRIBE_ENVELOPES), request, ends=True)
        reader.wait_for_ends(count, END_SECONDS)


def bad_handshakes(port: int, address: str, count: int) -> None:
    """Connect, and send some bytes in place of a TLS handshake."""
    for _ in range(count):
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 30, (address, 0)) as stranger,
        ):
            stranger.sendall(b"no handshake, but some bytes of a stranger")
            stranger.recv(100)


def many_topics(port: int, address: str, count: int) -> None:
    """Ask for 10,000 topics at a time, on eight connections."""
    topics = [each.to_bytes(33, "big") for each in range(TOPICS)]
    query = message_api_pb2.EnvelopesQuery(topics=topics)
    request = message_api_pb2.QueryEnvelopesRequest(query=query).SerializeToString()
    dear_requests(port, address, count, QUERY_ENVELOPES, request)


@contextmanager
def attacking(
    attack: Attack, port: int, count: int, address: str = ADDRESS
) -> Iterator[BaseProcess]:
    """Run an attack beside the block, in a process that ends with the block."""
    process = multiprocessing.get_context("spawn").Process(
        target=_attack, args=(attack, port, address, count), daemon=True
    )
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _attack(attack: Attack, port: int, address: str, count: int) -> None:
    leave_the_processor()
    attack(port, address, count)


def leave_the_processor() -> None:
    """Let this process work only where nobody else does: a real stranger brings its own processor.

    Linux may weigh sessions first ("autogroup", sched(7)), and then a priority counts within its
    session alone: this process gets a session of its own, whose priority is as low.
    """
    os.setsid()
    os.nice(19)
    group = Path("/proc/self/autogroup")
    if group.exists():
        group.write_text("19")
