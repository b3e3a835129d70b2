"""Publishes: an answer counts if its originator signed it, and a bad one leads to the next node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc
import pytest

from chainkit.protocol.payer_envelope import parse_payer_envelope
from chainkit.service.refusals import PassedOn
from chainkit.signatures import SigningKey
from chainkit_client.breach import Breach
from chainkit_client.network.publisher import (
    GatewayPublisher,
    NodePublisher,
    NothingPublished,
    OutcomeUnknown,
)
from chainkit_client.nodes.connection import Conflict, NodeLost, NodeUnreached, Unavailable
from support import publishes
from support.client.served import KEYS, NODE, NOW_NS, PEER, of_chain
from support.network.originator import Originator

PAYLOAD = publishes.group_message()
COMMIT = publishes.commit({})
PAYER = SigningKey(b"\7" * 32)
UNREACHED = NodeUnreached("node", "a connection", "none")
LOST = NodeLost("node", "an answer", "none")
LAGS = Unavailable(grpc.StatusCode.UNAVAILABLE, "it lags", b"details")
BEHIND = Conflict(grpc.StatusCode.ABORTED, "behind", b"details")


@dataclass
class FakeNode:
    """Originates what it gets, or answers something else."""

    originator: Originator
    answer: bytes | Exception | None = None
    got: list[bytes] = field(default_factory=list)

    @property
    def node_id(self) -> int:
        return self.originator.node_id

    async def publish(self, payer_envelope: bytes, seconds: float) -> bytes:
        self.got.append(payer_envelope)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or self.originator.signed(len(self.got), 60, payer_envelope)


class Network:
    def __init__(self) -> None:
        self.one, self.other = FakeNode(NODE), FakeNode(PEER)
        self.kept: list[Breach] = []
        nodes = [self.one, self.other]
        self.publisher = NodePublisher(
            lambda topic: nodes,  # type: ignore[arg-type, return-value]
            PAYER,
            lambda: KEYS,
            lambda: NOW_NS,
            self.kept.extend,
        )

    def publish(self) -> int:
        """Return who originated the payload."""
        envelope = asyncio.run(self.publisher.publish(PAYLOAD, NOW_NS))
        assert envelope.client.client_envelope == PAYLOAD
        return envelope.originator_id


@pytest.fixture
def network() -> Network:
    return Network()


def test_node_publisher__honest_node__pays_and_returns_what_it_signed(network: Network) -> None:
    assert network.publish() == 100

    [paid] = network.one.got
    parsed = parse_payer_envelope(paid)
    assert (parsed.target_originator, parsed.client_envelope) == (100, PAYLOAD)
    assert (network.other.got, network.kept) == ([], [])


@pytest.mark.conforms("C5")
@pytest.mark.parametrize("error", [UNREACHED, LOST, LAGS], ids=["unreached", "lost", "503"])
def test_node_publisher__node_gives_no_answer__the_next_one_gets_the_same_payload(
    network: Network, error: Exception
) -> None:
    network.one.answer = error

    assert network.publish() == 200
    assert parse_payer_envelope(network.other.got[0]).client_envelope == PAYLOAD


LIES = {
    "a time ahead": NODE.signed(1, 60 + 301, publishes.paid(PAYLOAD, 100)),
    "another payload": NODE.signed(1, 60, publishes.paid(publishes.welcome(b"\1" * 32), 100)),
}


@pytest.mark.conforms("C5")
@pytest.mark.parametrize("lie", LIES)
def test_node_publisher__answer_breaks_a_rule__is_kept_before_another_node_is_asked(
    network: Network, lie: str
) -> None:
    network.one.answer = LIES[lie]
    order: list[str] = []
    kept = network.kept

    def keep(breaches: Sequence[Breach]) -> None:
        order.append("kept")
        assert network.other.got == []
        kept.extend(breaches)

    network.publisher._keep = keep

    assert network.publish() == 200
    assert [each.node_id for each in kept] == [100]
    assert order == ["kept"]


def test_node_publisher__answer_that_its_node_did_not_sign__is_no_answer(network: Network) -> None:
    network.one.answer = Originator(100, SigningKey(b"\6" * 32)).signed(1, 60)

    assert network.publish() == 200
    assert network.kept == []


def test_node_publisher__node_refuses_the_payload__no_other_is_asked(network: Network) -> None:
    network.one.answer = BEHIND

    with pytest.raises(Conflict):
        network.publish()
    assert network.other.got == []


def test_node_publisher__no_node_was_reached__may_be_published_again(network: Network) -> None:
    network.one.answer, network.other.answer = UNREACHED, LAGS

    with pytest.raises(NothingPublished, match="it lags"):
        network.publish()


@pytest.mark.parametrize("first", [LOST, LIES["a time ahead"]], ids=["lost", "lied"])
def test_node_publisher__one_may_have_it_and_no_other_does__is_unknown(
    network: Network, first: bytes | Exception
) -> None:
    network.one.answer, network.other.answer = first, UNREACHED

    with pytest.raises(OutcomeUnknown):
        network.publish()


@dataclass
class FakeGateway:
    answer: bytes | Exception

    async def publish(self, client_envelopes: Sequence[bytes], seconds: float) -> Sequence[bytes]:
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
UNPROVED = {
    "lost": LOST,
    "other bytes": b"\xff",
    "a stranger's": STRANGER.signed(1, 60, publishes.paid(PAYLOAD, 300)),
    "forged": Originator(100, STRANGER.key).signed(1, 60, publishes.paid(PAYLOAD, 100)),
    "of the chain by a stranger": of_chain(3, 60, client=PAYLOAD, server=STRANGER),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_gateway_publisher__answer_that_proves_nothing__leaves_it_unknown(name: str) -> None:
    kept: list[Breach] = []

    with pytest.raises(OutcomeUnknown):
        by_gateway(UNPROVED[name], PAYLOAD, kept)
    assert kept == []


def test_gateway_publisher__answer_breaks_a_rule__is_kept() -> None:
    kept: list[Breach] = []

    with pytest.raises(OutcomeUnknown, match="another payload"):
        by_gateway(LIES["another payload"], PAYLOAD, kept)
    assert [each.node_id for each in kept] == [100]


def test_gateway_publisher__refusal__is_passed_on() -> None:
    with pytest.raises(PassedOn, match="behind"):
        by_gateway(BEHIND, PAYLOAD, [])
