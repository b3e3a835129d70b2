"""Strangers that fill Envoy's memory: a request in JSON is held until it is whole."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from chainkit.service.edge.configuration import MOST_JSON_BYTES
from support.network.beside import resident_bytes
from support.network.edge_network import EdgeNetwork, ended
from support.network.real_nodes import RealNode, until

HEAP_BYTES = 160 << 20
BODIES = 300
TAKEN_BYTES = BODIES * MOST_JSON_BYTES * 7 // 2
"""One filling takes up to 2.6 times its bodies; a second one that is taken, too, as much again."""
LEFT_BYTES = 150 << 20
"""The most that may be left behind an attack."""
BACK_SECONDS = 360
"""Envoy's allocator keeps pages in case that the last minute's demand comes again."""
HEAD = (
    "POST /mls/v2/query-envelopes HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\n"
    f"content-length: {MOST_JSON_BYTES}\r\n\r\n"
)


@pytest.fixture
def small(edge: EdgeNetwork, tmp_path: Path) -> Iterator[RealNode]:
    """One more node, whose Envoy has little memory."""
    limits = tmp_path / "limits.json"
    limits.write_text(json.dumps({"edge": {"heap_bytes": HEAP_BYTES}}))
    trusting = ("--peer-ca", str(edge.files[0]))
    node = edge.network.add(None, "--limits", str(limits), *trusting)
    node.listens()
    node.originates()
    yield node
    edge.network.set_enabled(node.node_id, False)
    node.kill()


def fill(node: RealNode, connections: ExitStack) -> None:
    for _ in range(BODIES):
        stranger = socket.create_connection(("127.0.0.1", node.gate.target), 30)
        connections.enter_context(stranger)
        with suppress(ConnectionError):
            stranger.sendall(HEAD.encode() + bytes(MOST_JSON_BYTES - 1))


def test_requests_in_json__fill_the_memory__are_refused_and_counted_and_it_comes_back(
    small: RealNode,
) -> None:
    before = resident_bytes(small.pid)
    with ExitStack() as connections:
        fill(small, connections)
        # Envoy looks once a second.
        until(lambda: ended(small)["memory_full"] >= 1)
        fill(small, connections)
        assert resident_bytes(small.pid) < before + TAKEN_BYTES

    until(lambda: resident_bytes(small.pid) < before + LEFT_BYTES, BACK_SECONDS)
    until(lambda: small.api.newest() == [])
