"""Publishes: an answer counts if its originator signed it, and evidence of a bad one is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import pytest

from chainkit.nodes.outcomes import Conflict, NodeLost, NodeUnreached
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.service.refusals import PassedOn
from chainkit.signatures import SigningKey
from chainkit_client.breach import Breach
from chainkit_client.network.publisher import (
    GatewayPublisher,
    OutcomeUnknown,
)
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain
from support.network.originator import Originator

PAYLOAD = publishes.group_message()
COMMIT = publishes.commit({})
PAYER = SigningKey(b"\7" * 32)
UNREACHED = NodeUnreached("node", "a connection", "none")
LOST = NodeLost("node", "an answer", "none")
BEHIND = Conflict(grpc.StatusCode.ABORTED, "behind", b"details")


AHEAD = NODE.signed(1, 60 + 301, publishes.paid(PAYLOAD, 100))


@dataclass
class FakeGateway:
    answer: bytes | Exception

    async def publish(
        self, client_envelopes: Sequence[bytes], seconds: float, retention_days: int | None = None
    ) -> Sequence[bytes]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer]


def by_gateway(answer: bytes | Exception, payload: bytes, kept: list[Breach]) -> tuple[int, int]:
    publisher = GatewayPublisher(FakeGateway(answer), lambda: KEYS, lambda: NOW_NS, kept.extend)
    return asyncio.run(publisher.publish(payload, NOW_NS)).place


def test_gateway_publisher__answers_of_node_and_chain__are_verified_by_who_signed() -> None:
    of_node = PEER.signed(7, 60, publishes.paid(PAYLOAD, 200))
    of_the_chain = of_chain(3, 60, client=COMMIT, server=PEER)

    assert by_gateway(of_node, PAYLOAD, []) == (200, 7)
    assert by_gateway(of_the_chain, COMMIT, []) == (0, 3)


STRANGER = Originator(300, SigningKey(b"\5" * 32))


def place_alone(envelope: bytes) -> bytes:
    """A gateway's answer for a payload of the chain that no node serves yet."""
    answer = OriginatorEnvelope.FromString(envelope)
    answer.blockchain_proof.ClearField("node_signature")
    return answer.SerializeToString()


UNPROVED = {
    "lost": LOST,
    "other bytes": b"\xff",
    "a stranger's": STRANGER.signed(1, 60, publishes.paid(PAYLOAD, 300)),
    "forged": Originator(100, STRANGER.key).signed(1, 60, publishes.paid(PAYLOAD, 100)),
    "of the chain by a stranger": of_chain(3, 60, client=PAYLOAD, server=STRANGER),
    "another payload": NODE.signed(1, 60, publishes.paid(publishes.welcome(b"\1" * 32), 100)),
    "a time behind": NODE.signed(1, 60 - 31 * 60, publishes.paid(PAYLOAD, 100)),
    "of the chain, signed by nobody": place_alone(of_chain(3, 60, client=PAYLOAD, server=PEER)),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_gateway_publisher__answer_that_proves_nothing__leaves_it_unknown(name: str) -> None:
    kept: list[Breach] = []

    with pytest.raises(OutcomeUnknown):
        by_gateway(UNPROVED[name], PAYLOAD, kept)
    assert kept == []


@pytest.mark.conforms("C5")
def test_gateway_publisher__answer_breaks_a_rule__is_kept() -> None:
    kept: list[Breach] = []

    with pytest.raises(OutcomeUnknown, match="its time is"):
        by_gateway(AHEAD, PAYLOAD, kept)
    assert [each.node_id for each in kept] == [100]


def test_gateway_publisher__refusal__is_passed_on() -> None:
    with pytest.raises(PassedOn, match="behind"):
        by_gateway(BEHIND, PAYLOAD, [])
