"""Honest callers beside an address that fills a real node or gateway: counted, and not in time."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chainkit.protocol.methods import (
    PUBLISH_CLIENT_ENVELOPES,
    PUBLISH_PAYER_ENVELOPES,
    QUERY_ENVELOPES,
)
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto.payer_api_pb2 import PublishClientEnvelopesRequest
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.edge.frames import framed
from chainkit.service.edge.pace import PaceLimits
from chainkit.types import TopicKind
from support import publishes
from support.chains.chain import Deployment
from support.network.api import PAYER, Api
from support.network.own_gateway import OwnGateway
from support.network.raw_http2 import RawConnection
from support.network.real_nodes import RealNetwork, RealNode, becomes, real_network
from support.network.tcp_proxy import Mode

SECONDS = 300.0
REQUESTS, PAYLOADS = 20, 50
"""The greedy payer sends so much: a request is parsed at once, and takes long to judge."""
CALLS, CALLS_OF_ONE, LOT = 60, 30, 5
GREEDY, HONEST = b"greedy".ljust(32), b"honest".ljust(32)


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "limits.json"
    path.write_text(json.dumps({"strangers": {"calls": CALLS, "calls_of_one": CALLS_OF_ONE}}))
    return path


@pytest.fixture(scope="module")
def running(
    local_deployment: Deployment, limits: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNetwork]:
    with real_network(local_deployment, tmp_path_factory.mktemp("turns")) as running:
        yield running


@pytest.fixture(scope="module")
def node(running: RealNetwork, limits: Path) -> RealNode:
    node = running.add(None, "--limits", str(limits))
    node.listens()
    node.originates()
    return node


@pytest.fixture
def gateway(
    running: RealNetwork, node: RealNode, limits: Path, tmp_path: Path
) -> Iterator[OwnGateway]:
    route = node.node_id, node.gate.url
    gateway = OwnGateway(running.settings, tmp_path, route, "--limits", str(limits))
    gateway.url = gateway.start_at()
    yield gateway
    gateway.stop()


def publish(node: RealNode, key: bytes, count: int) -> bytes:
    payloads = [publishes.paid(publishes.welcome(key), node.node_id) for _ in range(count)]
    return framed(Envelopes(envelopes=payloads).SerializeToString())


def test_publish__another_address_has_much_under_way__is_stored_before_most_of_it(
    node: RealNode,
) -> None:
    port = node.gate.target
    with RawConnection(port, "127.0.0.9") as greedy, RawConnection(port, "127.0.0.8") as honest:
        much = [publish(node, GREEDY, PAYLOADS) for _ in range(REQUESTS)]
        little = publish(node, HONEST, 1)
        streams = [greedy.begin(PUBLISH_PAYER_ENVELOPES) for _ in much]
        for stream, body in zip(streams, much, strict=True):
            # Whole but for the last byte, so that all end together.
            greedy.send(stream, body[:-1], ends=False)
        stream = honest.begin(PUBLISH_PAYER_ENVELOPES)
        os.kill(node.pid, signal.SIGSTOP)
        try:
            for each, body in zip(streams, much, strict=True):
                greedy.send(each, body[-1:], ends=True)
            honest.send(stream, little, ends=True)
        finally:
            os.kill(node.pid, signal.SIGCONT)
        # The answers to the greedy payer wait for it to read.
        last = REQUESTS * PAYLOADS + 1
        assert becomes(lambda: node.api.ranges(node.node_id)[0] == last, SECONDS)

    [stored] = node.api.query(topics=[TopicKind.WELCOME.topic(HONEST)])
    assert parse_originated(stored).envelope.sequence_id <= last // 2


def send_all(greedy: RawConnection, path: str, body: bytes) -> None:
    """Send twice as many calls as there are places for all."""
    for _ in range(2 * CALLS):
        greedy.send(greedy.begin(path), body, ends=True)
    # All but those that have a place.
    assert greedy.wait_for_ends(CALLS, SECONDS)


def test_call__another_address_has_many_calls_that_wait__is_answered(node: RealNode) -> None:
    body = publish(node, GREEDY, 1)
    with RawConnection(node.gate.target, "127.0.0.9") as greedy:
        with closing(sqlite3.connect(node.database, timeout=SECONDS)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            send_all(greedy, PUBLISH_PAYER_ENVELOPES, body)
            assert node.api.newest() == []
            connection.rollback()
        assert greedy.wait_for_ends(2 * CALLS, SECONDS)


def refuse_often(port: int, path: str, ask: Callable[[], object]) -> None:
    """Send what is no message; ask while more and more of it is not refused yet."""
    many, more = int(PaceLimits().burst), 10 * CALLS
    with RawConnection(port, "127.0.0.9") as greedy:
        for number in range(many + more):
            greedy.send(greedy.begin(path), framed(b"\xff"), ends=True)
            if number < many:
                # Never more than its calls, which are refused for another reason.
                assert greedy.wait_for_ends(number - LOT, SECONDS)
            elif number < many + 2 * CALLS and number % LOT == 0:
                ask()
        # A slow machine asks at the pace of the refusals: the last ones were sent at once.
        assert greedy.ended.total() < many + more
        assert greedy.wait_for_ends(many + more, SECONDS)


def test_refusals__of_an_address_that_had_many__come_later_and_hold_up_nobody(
    node: RealNode,
) -> None:
    refuse_often(node.gate.target, QUERY_ENVELOPES, node.api.newest)


def test_refusals__more_come_later_than_a_gateway_has_calls__hold_up_nobody(
    gateway: OwnGateway,
) -> None:
    port = int(gateway.url.rpartition(":")[2])
    with closing(Api(gateway.url)) as honest:
        refuse_often(port, PUBLISH_CLIENT_ENVELOPES, lambda: honest.call("GetNodes", b"", PAYER))


def test_call__another_address_has_many_calls_that_wait_at_a_gateway__is_answered(
    node: RealNode, gateway: OwnGateway
) -> None:
    request = PublishClientEnvelopesRequest(envelopes=[publishes.welcome(GREEDY)])
    port = int(gateway.url.rpartition(":")[2])
    with RawConnection(port, "127.0.0.9") as greedy, closing(Api(gateway.url)) as honest:
        node.gate.set(Mode.STALLED)
        try:
            send_all(greedy, PUBLISH_CLIENT_ENVELOPES, framed(request.SerializeToString()))
            assert honest.call("GetNodes", b"", PAYER)
        finally:
            node.gate.set(Mode.OPEN)
        assert greedy.wait_for_ends(2 * CALLS, SECONDS)
