"""Publishes that are lost, refused or impossible: each intent ends, nothing is sent by guess."""

from __future__ import annotations

from collections import Counter

import pytest

from chainkit_client.groups.publishing import Answer, PublishOutcome
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.storage.schema import DeliveryStatus, IntentState
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, SECOND_NS, Device, update

from .conftest import MakeParty

S = IntentState
UNKNOWN = Answer(PublishOutcome.UNKNOWN)
NOT_TAKEN = Answer(PublishOutcome.NOT_TAKEN)
CONFLICT = Answer(PublishOutcome.CONFLICT)
REFUSED = Answer(PublishOutcome.REFUSED, "it breaks a rule")


def delivery(device: Device, content: bytes) -> DeliveryStatus:
    rows = device.groups.messages(GROUP_ID)
    return next(each.delivery for each in rows if each.content == content)


def test_advance__the_answer_is_lost_and_the_payload_arrived__is_not_sent_again(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.answers = [UNKNOWN]
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)

    alice.advance()
    alice.advance()
    assert (alice.states()[-1], len(alice.network.published)) == (S.PUBLISHED, 1)
    party.settle()

    assert alice.states()[-1] is S.PROCESSED
    assert len(party.logs.payloads) == 1


def test_advance__the_payload_is_absent_for_good__the_same_bytes_are_sent(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.answers = [UNKNOWN]
    alice.network.lost = True
    update(alice)
    alice.network.lost = False

    alice.restart()
    alice.advance()
    party.settle()

    assert alice.states()[-1] is S.PROCESSED
    [sent] = party.logs.chain()
    assert alice.intent().publish_attempts == 1
    assert sent == alice.network.published[0].client_envelope


def test_outgoing__after_a_restart__tells_when_the_payload_was_sent_the_last_time(
    make_party: MakeParty,
) -> None:
    alice = make_party("alice", "bob")["alice"]
    alice.network.answers = [UNKNOWN, UNKNOWN, NOT_TAKEN]
    alice.network.lost = True
    sent_at_ns = []
    update(alice)
    for _ in range(3):
        alice.restart()
        outgoing = alice.groups.outgoing(alice.intent().id)
        assert outgoing is not None
        sent_at_ns.append(outgoing.sent_at_ns)
        alice.advance()

    assert sent_at_ns == [BEGIN_NS + 2 * SECOND_NS, BEGIN_NS + 3 * SECOND_NS, None]


def test_advance__killed_before_it_was_sent__is_looked_up_and_sent(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]

    async def killed(outgoing: object) -> Answer:
        raise KeyboardInterrupt

    publish = alice.network.publish
    alice.network.publish = killed  # type: ignore[assignment,method-assign]
    with pytest.raises(KeyboardInterrupt):
        update(alice)
    alice.network.publish = publish  # type: ignore[method-assign]
    alice.restart()
    assert alice.states()[-1] is S.PUBLISHED

    party.settle()

    assert alice.states()[-1] is S.PROCESSED
    assert len(party.logs.chain()) == 1


@pytest.mark.conforms("R21")
def test_advance__conflict_with_a_commit__is_encrypted_again_once_the_commit_is_read(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice, bob = party["alice"], party["bob"]
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)
    update(bob)
    alice.network.answers = [CONFLICT, CONFLICT, CONFLICT]

    # The commit is not read yet: a new payload would be as the first one.
    alice.advance()
    alice.advance()
    alice.read()
    alice.advance()
    assert alice.states()[-1] is S.TO_SEND
    assert alice.intent().refusals == 0
    party.settle()

    first, again, once_more, anew = alice.network.published
    assert first.client_envelope == again.client_envelope == once_more.client_envelope
    assert anew.payload_hash != first.payload_hash
    assert bob.words() == alice.words() == [b"words"]


@pytest.mark.parametrize(("answer", "payloads"), [(UNKNOWN, 5), (NOT_TAKEN, 1), (CONFLICT, 1)])
def test_advance__network_does_not_take_it_for_long__the_intent_is_not_given_up(
    make_party: MakeParty, answer: Answer, payloads: int
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.lost, alice.network.answers = True, [answer] * 9
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)
    for _ in range(9):
        alice.advance()
    alice.network.lost = False

    party.settle()

    assert party["bob"].words() == [b"words"]
    # Bytes that were sent twice without an end may stand with an envelope that no node has.
    sent = Counter(each.client_envelope for each in alice.network.published)
    assert len(sent) == payloads
    assert answer is not UNKNOWN or max(sent.values()) == 2


@pytest.mark.parametrize("refusals", [2, 3])
def test_advance__refused__is_built_again_and_given_up_at_the_third_time(
    make_party: MakeParty, refusals: int
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.answers = [REFUSED] * refusals
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)

    party.settle()
    for _ in range(4):
        alice.advance()
    party.settle()

    intent = alice.intent()
    if refusals == 2:
        assert (intent.state, party["bob"].words()) == (S.PROCESSED, [b"words"])
        return
    assert (intent.state, intent.reason) == (S.ERROR, "it breaks a rule")
    assert delivery(alice, b"words") is DeliveryStatus.FAILED
    assert len({each.payload_hash for each in alice.network.published}) == 3


def test_advance__refused_by_a_liar_who_kept_it__the_late_payload_counts(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.answers = [REFUSED] * 3
    alice.groups.queue(GROUP_ID, KeyUpdate())
    for _ in range(3):
        alice.advance()
    assert alice.states()[-1] is S.ERROR

    party.logs.add(CHAIN, alice.network.published[0].client_envelope)
    party.settle()

    assert alice.states()[-1] is S.PROCESSED
    assert alice.authenticators()[2] == party["bob"].authenticators()[2]


def test_advance__nobody_offers_a_key_package__is_given_up(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol"])
    del party.logs.key_packages[party["carol"].key]
    alice = party["alice"]
    alice.groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))

    for _ in range(3):
        alice.advance()

    assert alice.states()[-1] is S.ERROR
    assert "key package of installation" in alice.intent().reason


def test_advance__another_installations_key_package__is_not_added(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol", "mallory"])
    carol, mallory = party["carol"], party["mallory"]
    party.logs.key_packages[carol.key] = party.logs.key_packages[mallory.key]
    alice = party["alice"]
    alice.groups.queue(GROUP_ID, AddMembers((carol.key,)))

    for _ in range(3):
        alice.advance()
    party.settle()

    assert alice.states()[-1] is S.ERROR
    assert alice.members() == {"alice", "bob"}


def test_advance__removal_of_itself__is_given_up(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party["alice"].groups.queue(GROUP_ID, RemoveMembers((party["alice"].key,)))

    party["alice"].advance()

    assert party["alice"].states()[-1] is S.ERROR
    assert party["alice"].members() == {"alice", "bob"}
