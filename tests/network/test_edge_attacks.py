"""Strangers that wear a node out, with a reader beside them whom the node goes on to serve."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.edge.frames import framed
from chainkit.service.edge.unfinished import UnfinishedLimits
from support.network.api import REPLICATION
from support.network.edge_network import EdgeNetwork, ended
from support.network.raw_http2 import INITIAL_WINDOW_SIZE, RawConnection
from support.network.real_nodes import RealNode, becomes, until

QUERY, STREAM = (f"/{REPLICATION}/{name}" for name in ("QueryEnvelopes", "SubscribeEnvelopes"))
TIMES = {"header_seconds": 2, "request_seconds": 3, "quiet_seconds": 3, "handshake_seconds": 2}
STREAMS_OF_CONNECTION = 900
"""Envoy closes a connection for which more than 1,000 resets wait: on a busy machine all end at
once."""
CONNECTIONS = 100
UNFINISHED = UnfinishedLimits()


@pytest.fixture(scope="module")
def attacked(edge: EdgeNetwork, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """One more node, whose Envoy waits for seconds only."""
    limits = tmp_path_factory.mktemp("attacked") / "limits.json"
    content = {"edge": TIMES, "strangers": {"connections": CONNECTIONS}}
    limits.write_text(json.dumps(content))
    node = edge.network.add(None, "--limits", str(limits), "--peer-ca", str(edge.files[0]))
    node.listens()
    node.originates()
    yield node
    edge.network.set_enabled(node.node_id, False)
    node.kill()


@contextmanager
def counted(node: RealNode, reason: str, least: int) -> Iterator[None]:
    """Check that a block adds to a count, and that readers are served to its end."""
    before = ended(node)[reason]
    yield
    assert node.api.newest() == []
    assert becomes(lambda: ended(node)[reason] >= before + least), ended(node)


def test_streams_without_a_request__more_than_an_address_may__end_and_hold_up_nobody(
    attacked: RealNode,
) -> None:
    def ended_by_both() -> float:
        found = ended(attacked)
        return found["request_late"] + found["unfinished"]

    before = ended_by_both()
    with (
        # A slow machine frees places of late requests while others still come.
        counted(attacked, "request_late", UNFINISHED.requests_of_one),
        counted(attacked, "unfinished", 1),
        RawConnection(attacked.gate.target) as one,
        RawConnection(attacked.gate.target) as other,
    ):
        for connection in (one, other):
            for _ in range(STREAMS_OF_CONNECTION):
                connection.begin(QUERY)
        assert attacked.api.newest() == []
        assert all(each.wait_for_ends(STREAMS_OF_CONNECTION, 30.0) for each in (one, other))
    assert becomes(lambda: ended_by_both() - before >= 2 * STREAMS_OF_CONNECTION)


def test_bodies_without_end__more_bytes_than_an_address_may__are_refused(
    attacked: RealNode,
) -> None:
    body = framed(bytes(24 << 20))
    with counted(attacked, "unfinished", 1), ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(attacked.gate.target)) for _ in range(4)]
        senders = [threading.Thread(target=_send, args=(each, body)) for each in connections]
        for each in senders:
            each.start()
        assert attacked.api.newest() == []
        for each in senders:
            each.join()
        assert all(each.wait_for_ends(1, 30.0) for each in connections)


def _send(connection: RawConnection, body: bytes) -> None:
    # All but the last byte: the request stays unfinished.
    connection.send(connection.begin(PUBLISH_PAYER_ENVELOPES), body[:-1], ends=False)


def test_readers_that_take_nothing__frames_wait_for_them__end(attacked: RealNode) -> None:
    query = message_api_pb2.EnvelopesQuery(originator_node_ids=[0])
    request = framed(message_api_pb2.SubscribeEnvelopesRequest(query=query).SerializeToString())
    with (
        counted(attacked, "quiet", 20),
        RawConnection(attacked.gate.target, settings={INITIAL_WINDOW_SIZE: 0}) as reader,
    ):
        for _ in range(20):
            reader.send(reader.begin(STREAM), request, ends=True)
        until(lambda: attacked.metric("streams_open") >= 20)
        assert reader.wait_for_ends(20, 30.0)


def test_tls__handshakes_that_are_none__are_counted_and_leave_no_line_in_the_log(
    edge: EdgeNetwork,
) -> None:
    peer = edge.peer
    assert peer.service is not None
    lines = len(peer.service.log_lines())
    with counted(peer, "tls_failed", 50):
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", peer.gate.target), 30) as stranger:
                stranger.sendall(b"no handshake, but some bytes of a stranger")
                stranger.recv(100)
    said = [line for line in peer.service.log_lines()[lines:] if not line.startswith("{")]
    assert said == []


def test_request__longer_than_any_may_be__is_refused_before_it_has_come(
    attacked: RealNode,
) -> None:
    # An address without refusals before: these would make it wait.
    stranger = RawConnection(attacked.gate.target, "127.0.0.7")
    with counted(attacked, "too_large", 1), stranger as connection:
        connection.send(connection.begin(QUERY), b"\0" + b"\x7f" * 4, ends=False)
        # Long before its time is over.
        assert connection.wait_for_ends(1, TIMES["request_seconds"] - 1)


def test_connections__more_than_there_may_be__are_closed_and_open_ones_go_on(
    attacked: RealNode,
) -> None:
    assert attacked.api.newest() == []
    with counted(attacked, "too_many_connections", 50), ExitStack() as stack:
        for _ in range(CONNECTIONS + 50):
            address = ("127.0.0.1", attacked.gate.target)
            stack.enter_context(socket.create_connection(address, 30, ("127.0.0.9", 0)))
        assert attacked.api.newest() == []
        until(lambda: ended(attacked)["too_many_connections"] >= 50)
