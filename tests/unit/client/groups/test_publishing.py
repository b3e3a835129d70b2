"""Intents over a network: every one ends, nothing is sent twice by guess."""

from __future__ import annotations

import pytest

from chainkit_client.groups.publishing import Answer, PublishOutcome
from chainkit_client.groups.session import NotAMember
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.storage.schema import DeliveryStatus, IntentState, MessageKind
from support.client.group_network import BEGIN_NS, CHAIN, GROUP_ID, NODE, Device, Party, update

from .conftest import MakeParty

S = IntentState
UNKNOWN = Answer(PublishOutcome.UNKNOWN)
NOT_TAKEN = Answer(PublishOutcome.NOT_TAKEN)
REFUSED = Answer(PublishOutcome.REFUSED, "it breaks a rule")


def delivery(device: Device, content: bytes) -> DeliveryStatus:
    rows = device.groups.messages(GROUP_ID)
    return next(each.delivery for each in rows if each.content == content)


def places(party: Party) -> list[int]:
    return [one for one, _, _ in party.logs.payloads]


@pytest.mark.conforms("R20")
def test_advance__an_addition__is_built_published_read_back_and_invites(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    alice = party["alice"]
    alice.groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))
    invited = len(party.logs.welcomes)

    alice.advance()
    assert (alice.states()[-1], len(party.logs.welcomes)) == (S.PUBLISHED, invited)
    alice.read()
    assert (alice.states()[-1], len(party.logs.welcomes)) == (S.COMMITTED, invited)
    alice.advance()

    assert (alice.states()[-1], len(party.logs.welcomes)) == (S.PROCESSED, invited + 1)
    party.read()
    assert party["carol"].members() == party["bob"].members() == {"alice", "bob", "carol"}


@pytest.mark.conforms("R22")
def test_advance__a_removal_and_a_message__are_read_back(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    alice = party["alice"]
    alice.groups.queue(GROUP_ID, RemoveMembers((party["carol"].key,)))
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)
    alice.advance()
    assert alice.states()[1:] == [S.PUBLISHED, S.PUBLISHED]

    party.settle()

    assert alice.states()[1:] == [S.PROCESSED, S.PROCESSED]
    assert alice.members() == party["bob"].members() == {"alice", "bob"}
    assert party["bob"].words() == [b"words"]
    assert not party["carol"].groups.group(GROUP_ID).is_member


@pytest.mark.conforms("R17")
def test_advance__a_commit_that_loses__sends_no_welcome(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol"])
    update(party["bob"])
    party["alice"].groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))
    party["alice"].advance()
    invited = len(party.logs.welcomes)

    party["alice"].read()
    lost = party["alice"].states()[-1]
    party["alice"].advance()

    assert lost is S.TO_SEND
    assert len(party.logs.welcomes) == invited


@pytest.mark.conforms("R9")
def test_advance__an_addition_that_lost__is_built_anew_with_a_new_key_package(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    alice, carol = party["alice"], party["carol"]
    update(party["bob"])
    alice.groups.queue(GROUP_ID, AddMembers((carol.key,)))
    alice.advance()
    first = alice.network.published[-1]
    carol.offer()
    newest = party.logs.key_packages[carol.key]
    asked = []
    fetch = alice.network.fetch_key_packages

    async def watched(installations: object) -> dict[bytes, bytes]:
        found = dict(await fetch(installations))  # type: ignore[arg-type]
        asked.append(found)
        return found

    alice.network.fetch_key_packages = watched  # type: ignore[assignment,method-assign]
    party.settle()

    assert asked == [{carol.key: newest}]
    assert alice.network.published[-1].payload_hash != first.payload_hash
    assert carol.groups.view(GROUP_ID).epoch == 3


@pytest.mark.conforms("R9")
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_advance__somebody_else_did_it_meanwhile__is_processed(
    make_party: MakeParty, kind: str
) -> None:
    party = make_party("alice", "bob", "carol", others=["dave"])
    change = (
        AddMembers((party["dave"].key,)) if kind == "add" else RemoveMembers((party["carol"].key,))
    )
    for name in ("alice", "bob"):
        party[name].groups.queue(GROUP_ID, change)
        party[name].advance()

    party.settle()

    assert party["alice"].states()[-1] is party["bob"].states()[-1] is S.PROCESSED
    assert party["bob"].intent().payload_hash is None
    assert party["alice"].groups.view(GROUP_ID).epoch == 2


@pytest.mark.conforms("R21")
@pytest.mark.parametrize("kind", ["add", "remove", "update"])
def test_apply__anothers_commit_wins__the_intent_waits_again(
    make_party: MakeParty, kind: str
) -> None:
    party = make_party("alice", "bob", "carol", others=["dave"])
    changes = {
        "add": AddMembers((party["dave"].key,)),
        "remove": RemoveMembers((party["carol"].key,)),
        "update": KeyUpdate(),
    }
    update(party["bob"])
    party["alice"].groups.queue(GROUP_ID, changes[kind])
    party["alice"].advance()

    party["alice"].read()

    intent = party["alice"].intent()
    assert (intent.state, intent.payload_hash, intent.client_envelope) == (S.TO_SEND, None, b"")
    party.settle()
    assert party["alice"].states()[-1] is S.PROCESSED


@pytest.mark.conforms("R21")
def test_apply__a_message_that_others_cannot_read_any_more__is_encrypted_anew(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.network.lost = True
    alice.groups.send(GROUP_ID, b"words", BEGIN_NS)
    alice.advance()
    states = []
    for _ in range(3):
        update(party["bob"])
        party.read()
        states.append(alice.states()[-1])
    alice.network.lost = False

    party.settle()

    assert states == [S.PUBLISHED, S.PUBLISHED, S.TO_SEND]
    assert party["bob"].words() == [b"words"]


@pytest.mark.conforms("R7")
@pytest.mark.parametrize("count", [2, 5])
def test_advance__committers_at_once__each_ends_within_as_many_rounds(
    make_party: MakeParty, count: int
) -> None:
    names = [f"member{number}" for number in range(count)]
    party = make_party(*names)
    for name in names:
        party[name].groups.queue(GROUP_ID, KeyUpdate())

    rounds = 0
    while any(party[name].states()[-1] is not S.PROCESSED for name in names):
        # All build on the same epoch, before any of them reads.
        for name in names:
            party[name].advance()
        party.read()
        for name in names:
            party[name].groups.follow_up(GROUP_ID)
        rounds += 1
        assert rounds <= count

    assert {party[name].groups.view(GROUP_ID).epoch for name in names} == {1 + count}


@pytest.mark.conforms("C16")
def test_advance__before_others_are_in__nothing_is_published(make_party: MakeParty) -> None:
    party = make_party("alice", others=["bob", "carol"])
    alice = party["alice"]
    alice.groups.send(GROUP_ID, b"alone", BEGIN_NS)
    alice.groups.queue(GROUP_ID, KeyUpdate())
    alice.groups.queue(GROUP_ID, RemoveMembers((party["bob"].key,)))
    both = party["bob"].key, party["carol"].key
    alice.groups.queue(GROUP_ID, AddMembers(both))

    alice.advance()

    assert alice.states() == [S.PROCESSED] * 4
    assert (party.logs.payloads, alice.network.published) == ([], [])
    assert delivery(alice, b"alone") is DeliveryStatus.PUBLISHED
    party.settle()
    assert party["bob"].members() == party["carol"].members() == {"alice", "bob", "carol"}
    assert party["bob"].words() == []
    alice.groups.send(GROUP_ID, b"now all", BEGIN_NS)
    party.settle()
    assert party["bob"].words() == party["carol"].words() == [b"now all"]


def test_advance__a_commit_is_out__messages_go_out_and_other_commits_wait(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    alice = party["alice"]
    alice.groups.queue(GROUP_ID, KeyUpdate())
    alice.groups.queue(GROUP_ID, KeyUpdate())
    alice.groups.send(GROUP_ID, b"meanwhile", BEGIN_NS)

    alice.advance()
    states = alice.states()[1:]
    party.settle()

    assert states == [S.PUBLISHED, S.TO_SEND, S.PUBLISHED]
    assert alice.states()[1:] == [S.PROCESSED] * 3
    assert party["bob"].words() == [b"meanwhile"]
    assert alice.groups.view(GROUP_ID).epoch == 3


def test_send__the_same_words_at_the_same_time__are_two_messages(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    ids = [party["alice"].groups.send(GROUP_ID, b"words", BEGIN_NS) for _ in range(2)]

    party.settle()

    assert len(set(ids)) == 2
    assert party["bob"].words() == [b"words", b"words"]


def test_queue__after_a_removal__is_refused(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party["alice"].groups.queue(GROUP_ID, RemoveMembers((party["bob"].key,)))
    party.settle()

    with pytest.raises(NotAMember):
        party["bob"].groups.send(GROUP_ID, b"words", BEGIN_NS)
    with pytest.raises(NotAMember):
        party["bob"].groups.queue(GROUP_ID, KeyUpdate())


def test_advance__removed_and_added_again__reads_from_then_on(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    alice, bob = party["alice"], party["bob"]
    alice.groups.queue(GROUP_ID, RemoveMembers((bob.key,)))
    party.settle()
    alice.groups.send(GROUP_ID, b"without Bob", BEGIN_NS)
    party.settle()
    alice.groups.queue(GROUP_ID, AddMembers((bob.key,)))
    party.settle()
    alice.groups.send(GROUP_ID, b"with Bob", BEGIN_NS)
    bob.groups.send(GROUP_ID, b"back", BEGIN_NS)

    party.settle()

    assert sorted(bob.words()) == [b"back", b"with Bob"]
    assert sorted(alice.words()) == [b"back", b"with Bob", b"without Bob"]
    kinds = [each.kind for each in alice.groups.messages(GROUP_ID)]
    assert kinds.count(MessageKind.MEMBER_ADDED) == 2
    # Others tell of epochs in which Bob was out, and that is no fork.
    assert bob.groups.group(GROUP_ID).forked_at_epoch is None


def test_advance__messages_and_commits__go_where_they_belong(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party["alice"].groups.send(GROUP_ID, b"words", BEGIN_NS)
    party["alice"].advance()

    assert places(party) == [CHAIN, NODE]
    assert [each.is_commit for each in party["alice"].network.published] == [True, False]
