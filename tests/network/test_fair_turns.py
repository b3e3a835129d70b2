"""An honest payer beside one whose publishes fill a real node: counted in ids, not in time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from chainkit.protocol.methods import PUBLISH_PAYER_ENVELOPES
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.proto.stored_envelopes_pb2 import Envelopes
from chainkit.service.edge.frames import framed
from chainkit.types import TopicKind
from support import publishes
from support.chains.chain import Deployment
from support.network.raw_http2 import RawConnection
from support.network.real_nodes import RealNode, becomes, real_network

SECONDS = 300.0
REQUESTS, PAYLOADS = 20, 50
"""The greedy payer sends so much: a request is parsed at once, and takes long to judge."""
GREEDY, HONEST = b"greedy".ljust(32), b"honest".ljust(32)


@pytest.fixture
def node(
    local_deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealNode]:
    with real_network(local_deployment, tmp_path_factory.mktemp("turns")) as network:
        node = network.add(None)
        node.listens()
        node.originates()
        yield node


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
