"""Damaged requests and garbage on a running node's port: each gets its own answer, and no other."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest

from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.types import TopicKind
from localnet.network import Network
from support import publishes
from support.network.api import REPLICATION, Api, query
from support.vectors import from_hex, load

CASES = load("todays_clients")["cases"]
CHANCE = random.Random(27)
ROUNDS = 20
CONNECTIONS = 40
"""How many for each kind of garbage."""

ADDRESS = "0x" + "ab" * 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000040000000000")
HONEST = {"OK", "INVALID_ARGUMENT", "ABORTED"}
"""ABORTED: of a message that is whole, its cursor does not fit this node's."""


@pytest.fixture
def log(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "network0" / "node.log"


def damaged(data: bytes) -> bytes:
    """Flip some bits, cut the end, or put bytes of chance somewhere."""
    content = bytearray(data)
    how = CHANCE.randrange(3)
    if how == 0:
        for _ in range(CHANCE.randint(1, 8)):
            content[CHANCE.randrange(len(content))] ^= 1 << CHANCE.randrange(8)
    elif how == 1:
        del content[CHANCE.randrange(len(content)) :]
    else:
        at = CHANCE.randrange(len(content))
        content[at : at + CHANCE.randrange(4)] = CHANCE.randbytes(CHANCE.randint(1, 8))
    return bytes(content)


def publish_request(payer_envelope: bytes) -> bytes:
    return Envelopes(envelopes=[payer_envelope]).SerializeToString()


def damaged_publishes(client_envelope: bytes) -> Iterator[bytes]:
    """Damage at each depth: a payer who signs nonsense is told so as well."""
    yield publish_request(publishes.paid(damaged(client_envelope)))
    yield publish_request(damaged(publishes.paid(client_envelope)))
    yield damaged(publish_request(publishes.paid(client_envelope)))


def reading_requests(topic: bytes) -> Iterator[tuple[str, bytes]]:
    wanted = query(topics=[topic], cursor={0: 4, 100: 2**40})
    by_originator = query(originators=[0, 100], cursor={0: 4})
    for each in (wanted, by_originator):
        asked = message_api_pb2.QueryEnvelopesRequest(query=each, limit=100)
        yield "QueryEnvelopes", asked.SerializeToString()
        stream = message_api_pb2.SubscribeEnvelopesRequest(query=each)
        yield "SubscribeEnvelopes", stream.SerializeToString()
    newest = message_api_pb2.GetNewestEnvelopeRequest(topics=[topic, topic])
    yield "GetNewestEnvelope", newest.SerializeToString()
    inboxes = message_api_pb2.GetInboxIdsRequest()
    inboxes.requests.add(identifier=ADDRESS, identifier_kind=1)  # type: ignore[arg-type]
    yield "GetInboxIds", inboxes.SerializeToString()
    topics = message_api_pb2.SubscribeTopicsRequest()
    topics.filters.add(topic=topic).last_seen.node_id_to_sequence_id.update({0: 4})
    yield "SubscribeTopics", topics.SerializeToString()


def ask(node: Api, method: str, request: bytes) -> str:
    """Return the name of the code that a request gets; of a stream, its first frame counts."""
    try:
        if method.startswith("Subscribe"):
            call = node.channel.unary_stream(f"/{REPLICATION}/{method}")(request, timeout=5)
            next(call)
            call.cancel()
        else:
            node.channel.unary_unary(f"/{REPLICATION}/{method}")(request, timeout=5)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()  # type: ignore[attr-defined]
        return code.name
    return "OK"


def failures(log: Path) -> list[str]:
    """Return the lines about faults of our own."""
    return [each for each in log.read_text().splitlines() if '"request_failed"' in each]


def test_publish__damaged_bytes_of_todays_clients__gets_a_refusal_that_names_the_fault(
    node: Api, log: Path
) -> None:
    codes = Counter(
        ask(node, "PublishPayerEnvelopes", request)
        for case in CASES
        for _ in range(ROUNDS)
        for request in damaged_publishes(from_hex(case["client_envelope"]))
    )

    assert set(codes) <= HONEST, codes
    assert codes["INVALID_ARGUMENT"] > codes.total() / 2
    assert failures(log) == []


def test_read__damaged_requests_of_todays_clients__get_a_refusal_or_an_honest_answer(
    node: Api, log: Path
) -> None:
    codes = Counter(
        ask(node, method, damaged(request))
        for case in CASES
        for method, request in reading_requests(from_hex(case["topic"]))
        for _ in range(ROUNDS // 2)
    )

    assert set(codes) == {"OK", "INVALID_ARGUMENT"}, codes
    assert failures(log) == []


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """An HTTP/2 frame, whose length may be a lie."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


GARBAGE: list[Callable[[], bytes]] = [
    lambda: b"",
    lambda: CHANCE.randbytes(CHANCE.randint(1, 4000)),
    lambda: PREFACE[: CHANCE.randrange(len(PREFACE))],
    lambda: PREFACE,
    lambda: PREFACE + SETTINGS + CHANCE.randbytes(200),
    # A request that announces headers and does not end them; a frame that is never whole.
    lambda: PREFACE + SETTINGS + frame(1, 0, 1, b"\x82"),
    lambda: PREFACE + SETTINGS + frame(0, 0, 1, b"", 2**24 - 1),
    lambda: PREFACE + SETTINGS + b"".join(frame(8, 0, 0, bytes(4)) for _ in range(50)),
    lambda: b"GET / HTTP/1.1\r\nHost: node\r\n\r\n",
    lambda: b"\x16\x03\x01\x02\x00" + CHANCE.randbytes(100),
]


def test_flood__garbage_connections_that_stay_open__changes_nothing_for_honest_readers(
    node: Api, network: Network, log: Path
) -> None:
    key = CHANCE.randbytes(32)
    topics = [TopicKind.WELCOME.topic(key)]
    stored = node.publish(*[publishes.paid(publishes.welcome(key))] * 2)
    stream = node.subscribe(topics=topics)
    assert stream.take(2) == stored

    with ExitStack() as stack:
        for make in GARBAGE:
            for _ in range(CONNECTIONS):
                send(stack.enter_context(connected(network.node_url)), make())
        # On an old connection and on a new one.
        assert node.query(topics=topics) == stored
        with fresh_channel(network.node_url) as channel:
            asked = message_api_pb2.QueryEnvelopesRequest(query=query(topics=topics))
            call = channel.unary_unary(f"/{REPLICATION}/QueryEnvelopes")
            answer = call(asked.SerializeToString(), timeout=5)
        assert list(Envelopes.FromString(answer).envelopes) == stored
        published = node.publish(publishes.paid(publishes.welcome(key)))
        assert stream.take(1) == published

    assert node.query(topics=topics) == stored + published
    stream.close()
    assert failures(log) == []


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5)


def send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        # The server has closed it already.
        return


def fresh_channel(url: str) -> Any:
    options = (("grpc.use_local_subchannel_pool", 1),)
    return grpc.insecure_channel(urlsplit(url).netloc, options)
