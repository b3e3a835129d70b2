"""Identity updates that break a rule are refused before they are paid for, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from chainkit.nodes.outcomes import NodeLost, NodeUnreached
from chainkit.protocol.envelope import originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.service.refusals import InvalidRequest
from chainkit.types import TopicKind
from chainkit_gateway import inbox_rules
from chainkit_gateway.inbox_rules import Ask, check_update
from chainkit_gateway.routing import route
from chainkit_gateway.types import Publication
from support.gateway.fake_nodes import is_behind
from support.identity import AT_NS, ContractWallet, Step, Wallet, add, create, inbox_of, update
from support.inboxes import ALICE, APP, BOB, INBOX, SECOND

CREATED = update(INBOX, create(ALICE))
NEXT = update(INBOX, add(APP, ALICE), at_ns=AT_NS + SECOND)
STRANGER = update(INBOX, add(APP, BOB), at_ns=AT_NS + SECOND)


def enveloped(data: bytes, inbox_id: bytes = INBOX) -> bytes:
    envelope = envelopes_pb2.ClientEnvelope()
    envelope.aad.target_topic = TopicKind.IDENTITY_UPDATE.topic(inbox_id)
    envelope.identity_update.ParseFromString(data)
    return envelope.SerializeToString()


def publication(data: bytes) -> Publication:
    return route(enveloped(data), "ann")


def node(*updates: bytes, page: int = 2) -> Ask:
    """A node that serves these updates of the inbox."""
    served = []
    for number, data in enumerate(updates, 1):
        payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=enveloped(data))
        unsigned = envelopes_pb2.UnsignedOriginatorEnvelope(
            originator_sequence_id=number, payer_envelope=payer.SerializeToString()
        )
        served.append(originator_envelope(unsigned.SerializeToString(), bytes(32), bytes(65)))

    async def behind(topic: bytes, cursor: Mapping[int, int], seconds: float) -> Sequence[bytes]:
        return [each for each in served if is_behind(each, cursor)][:page]

    return behind


def failing(error: Exception) -> Ask:
    async def behind(topic: bytes, cursor: Mapping[int, int], seconds: float) -> Sequence[bytes]:
        raise error

    return behind


async def repeating(topic: bytes, cursor: Mapping[int, int], seconds: float) -> Sequence[bytes]:
    return await node(CREATED)(topic, {}, seconds)


def check(data: bytes, *nodes: Ask) -> None:
    asyncio.run(check_update(publication(data), nodes, 1.0))


AWAY = failing(NodeUnreached("node 100", "a connection", "none"))
LOST = failing(NodeLost("node 100", "an answer", "none"))


@pytest.mark.conforms("I16")
def test_check__update_that_breaks_a_rule__is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidRequest, match="no member, and not the recovery identifier"):
        check(STRANGER, node(CREATED))
    with pytest.raises(InvalidRequest, match="inbox is not created yet"):
        check(NEXT, node())
    with pytest.raises(InvalidRequest, match="inbox is created already"):
        check(CREATED, node(CREATED, NEXT, page=1))


@pytest.mark.parametrize("nodes", [(), (AWAY,), (AWAY, LOST), (LOST, node(CREATED))])
def test_check__good_update_or_nobody_answers__is_left_to_the_chain(nodes: Sequence[Ask]) -> None:
    check(NEXT, *nodes)


def test_check__one_node_lags_behind__the_others_are_asked() -> None:
    check(NEXT, node(), AWAY, node(CREATED))
    with pytest.raises(InvalidRequest):
        check(STRANGER, node(), AWAY, node(CREATED))


def test_check__history_that_nobody_can_have_accepted__counts_for_nothing() -> None:
    check(STRANGER, node(STRANGER, CREATED))


def test_check__node_that_repeats_a_page__is_not_asked_for_ever() -> None:
    check(NEXT, repeating)


def test_check__longer_history_than_is_judged_by__is_left_to_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox_rules, "MOST_UPDATES", 1)

    check(STRANGER, node(CREATED, NEXT))
    with pytest.raises(InvalidRequest):
        check(STRANGER, node(CREATED))


def test_check__contract_wallet_s_update__is_left_to_the_chain() -> None:
    owner = ContractWallet("safe")
    step: Step = create(owner)
    inbox_id = inbox_of(owner)
    found = route(enveloped(update(inbox_id, step), inbox_id), "ann")

    asyncio.run(check_update(found, [node()], 1.0))

    broken = route(enveloped(update(inbox_id, create(owner, by=Wallet("x"))), inbox_id), "ann")
    with pytest.raises(InvalidRequest):
        asyncio.run(check_update(broken, [node()], 1.0))
