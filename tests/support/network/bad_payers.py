"""Bad payers at a node, bad clients at a gateway, and strangers at a storage service.

Each is an attack as those of ``attackers``: it takes a port, its own address, and how many times.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from typing import Final

from chainkit.protocol.methods import PUBLISH_CLIENT_ENVELOPES, PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import payer_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.edge.frames import framed
from chainkit.signatures import SigningKey
from support import publishes
from support.network.attackers import END_SECONDS, FIRST_NODE
from support.network.raw_http2 import RawConnection

MOST_RETENTION_DAYS: Final = 2**32 - 1
UPLOAD_BYTES: Final = 16 << 10
"""Each 8 KiB give an upload another second."""
_CHANCE: Final = random.Random()


def floods(port: int, address: str, count: int) -> None:
    """Publish valid welcomes as fast as a node takes them, each one paid by a fresh key."""

    def paid() -> bytes:
        payer = SigningKey(_CHANCE.randbytes(32))
        welcome = publishes.welcome(_CHANCE.randbytes(32))
        return sign_payer_envelope(welcome, FIRST_NODE, payer, None)

    _ask(port, address, PUBLISH_PAYER_ENVELOPES, (_publish(paid()) for _ in range(count)))


def forged_days(port: int, address: str, count: int) -> None:
    """Publish with days of retention that no payer signed."""
    payload = publishes.paid(publishes.welcome(), FIRST_NODE)
    forged = publishes.with_other_days(payload, MOST_RETENTION_DAYS)
    _ask(port, address, PUBLISH_PAYER_ENVELOPES, [_publish(forged)] * count)


def garbage_payloads(port: int, address: str, count: int) -> None:
    """Publish payloads that are broken at random places."""
    payload = publishes.paid(publishes.group_message(), FIRST_NODE)
    broken = (_publish(_broken(payload)) for _ in range(count))
    _ask(port, address, PUBLISH_PAYER_ENVELOPES, broken)


def garbage_for_clients(port: int, address: str, count: int) -> None:
    """Have a gateway publish what is broken at random places."""
    payload = publishes.group_message()

    def request() -> bytes:
        message = payer_api_pb2.PublishClientEnvelopesRequest(envelopes=[payload])
        return _broken(message.SerializeToString())

    _ask(port, address, PUBLISH_CLIENT_ENVELOPES, (request() for _ in range(count)))


def endless_uploads(port: int, address: str, count: int) -> None:
    """Begin uploads that do not end, until the service has ended all of them."""
    head = b"POST /upload HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (UPLOAD_BYTES, bytes(UPLOAD_BYTES))
    with ExitStack() as stack:
        uploads = [stack.enter_context(_connected(port, address)) for _ in range(count)]
        for each in uploads:
            with suppress(OSError):
                each.sendall(head + chunk)
        for each in uploads:
            with suppress(OSError):
                while each.recv(1 << 16):
                    pass


def odd_downloads(port: int, address: str, count: int) -> None:
    """Ask for files that are nobody's, and send what is no HTTP."""
    for number in range(count):
        line = b"GET /files/%b HTTP/1.1\r\nhost: h\r\n\r\n" % _CHANCE.randbytes(16).hex().encode()
        with suppress(OSError), _connected(port, address) as stranger:
            stranger.sendall(_broken(line) if number % 2 else line)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1 << 16):
                pass


def _ask(port: int, address: str, path: str, messages: Iterable[bytes]) -> None:
    """Send requests on one connection, and wait for the answers to all."""
    with RawConnection(port, address) as connection:
        requests = [framed(each) for each in messages]
        for each in requests:
            connection.send(connection.begin(path), each, ends=True)
        connection.wait_for_ends(len(requests), END_SECONDS)


def _publish(payload: bytes) -> bytes:
    written: bytes = Envelopes(envelopes=[payload]).SerializeToString()
    return written


def _broken(data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(_CHANCE.randrange(1, 8)):
        changed[_CHANCE.randrange(len(changed))] = _CHANCE.randrange(256)
    return bytes(changed)


def _connected(port: int, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), END_SECONDS, (address, 0))
