"""Whether other nodes have a message: asked again with pauses that double."""

from __future__ import annotations

import asyncio

import pytest

from chainkit_client.network import replication
from chainkit_client.network.replication import replicated_by
from chainkit_client.nodes.connection import NodeLost
from chainkit_client.reading.verified import VerifiedEnvelope, read_envelope
from support.client.nodes import FakeNode
from support.client.served import KEYS, NODE, PEER
from support.network.simulation.loop import run

SENT = NODE.signed(3)


@pytest.fixture
def message() -> VerifiedEnvelope:
    envelope = read_envelope(SENT, 100, KEYS).envelope
    assert envelope is not None
    return envelope


@pytest.mark.conforms("C4")
def test_replicated_by__a_node_gets_it_after_a_while__is_asked_with_pauses_that_double(
    message: VerifiedEnvelope,
) -> None:
    peer = FakeNode(PEER)
    asked: list[float] = []

    def late(page: list[bytes]) -> list[bytes]:
        asked.append(asyncio.get_running_loop().time())
        return page if len(asked) == 4 else []

    peer.hold(SENT)
    peer.doctored = late

    assert run(replicated_by(message, [FakeNode(NODE), peer], KEYS)) == {200}
    assert asked == pytest.approx([0, 0.2, 0.6, 1.4])


@pytest.mark.conforms("C4")
def test_replicated_by__a_node_never_gets_it__ends(message: VerifiedEnvelope) -> None:
    peer = FakeNode(PEER)

    assert run(replicated_by(message, [peer], KEYS)) == set()
    assert peer.questions == replication.MOST_TRIES


@pytest.mark.parametrize("other", [NODE.signed(3, 1.0), NODE.signed(4)], ids=["bytes", "id"])
def test_replicated_by__node_serves_another__does_not_count(
    message: VerifiedEnvelope, other: bytes
) -> None:
    peer = FakeNode(PEER)
    peer.hold(other)

    assert run(replicated_by(message, [peer], KEYS)) == set()


def test_replicated_by__a_node_does_not_answer__the_others_do(message: VerifiedEnvelope) -> None:
    silent = FakeNode(PEER, error=NodeLost("node", "an answer", "none"))

    assert run(replicated_by(message, [silent], KEYS)) == set()
