"""Members whose inbox revoked them: the next commit of another member removes them first."""

from __future__ import annotations

from chainkit_client.groups.publishing import Answer, PublishOutcome
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.storage.schema import IntentState
from support.client.group_network import BEGIN_NS, GROUP_ID, Party, update

from .conftest import MakeParty

S = IntentState


def revoke(party: Party, name: str) -> None:
    """The inbox of a device revokes it, and all see so."""
    for each in party.devices.values():
        each.network.gone = frozenset({party[name].key})


def test_advance__a_member_was_revoked__it_leaves_before_the_next_commit(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol", others=["dave"])
    alice = party["alice"]
    revoke(party, "carol")
    alice.groups.queue(GROUP_ID, AddMembers((party["dave"].key,)))

    alice.advance()
    party.read()

    # Dave comes into a group that carol has left: his addition waits for the removal.
    assert alice.members() == party["bob"].members() == {"alice", "bob"}
    party.settle()
    assert party["dave"].members() == {"alice", "bob", "dave"}
    assert alice.states()[1:] == [S.PROCESSED, S.PROCESSED]
    assert not party["carol"].groups.group(GROUP_ID).is_member


def test_advance__messages_alone__remove_nobody(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    revoke(party, "carol")
    party["alice"].groups.send(GROUP_ID, b"words", BEGIN_NS)

    party.settle()

    assert party["alice"].members() == {"alice", "bob", "carol"}


def test_advance__two_members_commit_at_once__the_revoked_one_is_removed_once(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    revoke(party, "carol")
    for name in ("alice", "bob"):
        update(party[name])

    party.settle()

    for name in ("alice", "bob"):
        assert party[name].members() == {"alice", "bob"}
        removals = [
            each
            for each in party[name].groups.intents(GROUP_ID)
            if isinstance(each.arguments, RemoveMembers)
        ]
        assert [each.state for each in removals] == [S.PROCESSED]
    # One removal, and the keys of both.
    assert party["alice"].groups.view(GROUP_ID).epoch == 4


def test_advance__the_removal_was_given_up__another_commit_does_not_wait_for_it(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    alice = party["alice"]
    revoke(party, "carol")
    alice.network.answers = [Answer(PublishOutcome.REFUSED, "it breaks a rule")] * 6
    alice.groups.queue(GROUP_ID, KeyUpdate())
    for _ in range(3):
        alice.advance()
    assert alice.states()[1:] == [S.ERROR, S.ERROR]

    alice.groups.queue(GROUP_ID, KeyUpdate())
    party.settle()

    assert alice.states()[3:] == [S.PROCESSED]
    assert alice.members() == {"alice", "bob", "carol"}
