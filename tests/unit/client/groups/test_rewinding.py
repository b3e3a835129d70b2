"""Reorgs: no reorg forks a group, and nothing of a lost branch stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chainkit.errors import ReorgTooDeep
from chainkit_client.groups.payload import group_topic
from chainkit_client.intents.arguments import AddMembers, RemoveMembers
from chainkit_client.storage.schema import DeliveryStatus, IntentState, MessageKind
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    SECOND_NS,
    epochs_of,
    histories,
    taken_apart,
    update,
)

from .conftest import MakeParty

S = IntentState


def test_retract__a_commit_of_another_member__goes_back_and_follows_the_new_branch(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    before = party["carol"].authenticators()
    update(party["alice"])
    party.read()
    [old] = party.logs.chain()

    party.reorg(0, [])
    assert party["carol"].authenticators() == before
    update(party["bob"])
    party.logs.add(CHAIN, old)
    party.settle()

    assert len(histories(party, "alice", "bob", "carol")) == 1
    assert party["alice"].states()[-1] is party["bob"].states()[-1] is S.PROCESSED
    assert epochs_of(party["carol"].groups)[-2].payload_hash != party["alice"].intent()


def test_retract__an_own_commit_that_comes_back__counts_as_before(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    before = histories(party, "alice", "bob")
    old = party.logs.chain()

    party.reorg(0, [])
    waiting = party["alice"].states()[-1]
    party.reorg(0, old)
    party.settle()

    assert waiting is S.TO_SEND
    assert party["alice"].states()[-1] is S.PROCESSED
    assert histories(party, "alice", "bob") == before
    assert party.logs.chain() == old


def test_retract__own_commits_race_after_it__the_first_one_counts_once(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    old = party.logs.chain()
    party.reorg(0, [])
    # It is built again, and the old one comes back before it.
    party["alice"].advance()
    new = party.logs.chain()
    party.reorg(0, [*old, *new])

    party.settle()

    assert party["alice"].states()[-1] is S.PROCESSED
    assert len(histories(party, "alice", "bob")) == 1
    assert party["bob"].groups.view(GROUP_ID).epoch == 2


def test_retract__messages_of_the_lost_branch__are_sent_again_and_shown_once(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    update(party["bob"])
    party.settle()
    party["alice"].groups.send(GROUP_ID, b"on the lost branch", 1)
    party["alice"].advance()
    party["bob"].read()
    party["alice"].read()

    party.reorg(0, [])
    # Carol did not read it, and cannot any more.
    update(party["carol"])
    party.settle()

    for name in ("alice", "bob", "carol"):
        assert party[name].words() == [b"on the lost branch"]
    [row] = [each for each in party["alice"].groups.messages(GROUP_ID) if each.content[:2] == b"on"]
    assert row.delivery is DeliveryStatus.PUBLISHED


def test_retract__keys_that_were_used__are_not_used_again(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["bob"])
    party.settle()
    commit = party.logs.chain()
    party["alice"].groups.send(GROUP_ID, b"first", 1)
    party.settle()

    party.reorg(0, [])
    party.reorg(0, commit)
    party.read()
    party["alice"].groups.send(GROUP_ID, b"second", 2)
    # The toy engine fails where one key encrypts two messages.
    party.settle()

    assert party["bob"].words() == [b"first", b"second"]


def test_retract__members_who_came__are_gone_with_their_rows(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol"])
    party["bob"].groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))
    party.settle()
    assert party["carol"].groups.group(GROUP_ID).epoch == 2

    party.reorg(0, [])

    added = [
        each
        for each in party["alice"].groups.messages(GROUP_ID)
        if each.kind is MessageKind.MEMBER_ADDED
    ]
    assert party["alice"].members() == {"alice", "bob"}
    assert party["carol"].groups.group(GROUP_ID).epoch is None
    assert len(added) == 1


@pytest.mark.conforms("R17")
def test_retract__an_addition_built_again__invites_again_and_the_newcomer_follows(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    party["bob"].groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))
    party.settle()
    old = party.logs.chain()
    party["carol"].offer()

    party.reorg(0, [])
    update(party["alice"])
    # The old addition is of an epoch that is over.
    party.logs.add(CHAIN, old[0])
    party.settle()
    party["carol"].groups.send(GROUP_ID, b"here I am", 1)
    party.settle()

    assert len(party.logs.welcomes) == 3
    assert party["alice"].words() == party["bob"].words() == [b"here I am"]
    assert party["carol"].groups.view(GROUP_ID).epoch == 3


def test_retract__a_removal__lets_the_member_back(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    party["alice"].groups.queue(GROUP_ID, RemoveMembers((party["carol"].key,)))
    party.settle()
    assert not party["carol"].groups.group(GROUP_ID).is_member
    removal = party.logs.chain()

    party.reorg(0, [])
    party["carol"].groups.send(GROUP_ID, b"still here", 1)
    party["carol"].advance()
    party["bob"].read()
    assert party["bob"].words() == [b"still here"]
    party.reorg(0, removal)
    party.settle()

    assert not party["carol"].groups.group(GROUP_ID).is_member


@pytest.mark.parametrize("is_epoch_final", [False, True])
def test_retract__a_removal_before_a_late_message__reads_the_message(
    make_party: MakeParty, is_epoch_final: bool
) -> None:
    party = make_party("alice", "bob", "carol")
    carol = party["carol"]
    update(party["alice"])
    party.read()
    party["alice"].groups.queue(GROUP_ID, RemoveMembers((carol.key,)))
    party["alice"].advance()
    carol.read()
    party["bob"].groups.send(GROUP_ID, b"sent before the removal was known", 1)
    party["bob"].advance()
    carol.read()
    assert carol.words() == []
    if is_epoch_final:
        carol.groups.finalize(GROUP_ID, 1)

    party.reorg(1, [])
    carol.read()

    assert carol.words() == [b"sent before the removal was known"]


def test_apply__the_same_commit_in_another_block__takes_its_time(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol"])
    party["alice"].groups.queue(GROUP_ID, AddMembers((party["carol"].key,)))
    party["alice"].advance()
    party.read()
    [data] = party.logs.chain()
    bob = party["bob"]
    before = bob.authenticators()

    moved = taken_apart(data, CHAIN, 1, BEGIN_NS + 9 * SECOND_NS)
    first, again = (bob.groups.apply(GROUP_ID, [moved])[0] for _ in range(2))

    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert bob.authenticators() == before
    rows = bob.groups.messages(GROUP_ID)
    added = [each.sent_at_ns for each in rows if each.kind is MessageKind.MEMBER_ADDED]
    assert added[-1] == BEGIN_NS + 9 * SECOND_NS
    assert added.count(BEGIN_NS + SECOND_NS) == 0


def test_retract__behind_what_was_read__moves_nothing(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    before = party["bob"].authenticators()

    assert party["bob"].groups.retract(GROUP_ID, 1) is False

    assert party["bob"].authenticators() == before
    assert party["bob"].groups.cursor(group_topic(GROUP_ID)) == {CHAIN: 1}


def test_retract__what_is_final__is_an_error_and_changes_nothing(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    party["bob"].groups.finalize(GROUP_ID, 1)
    before = party["bob"].authenticators()

    with pytest.raises(ReorgTooDeep):
        party["bob"].groups.retract(GROUP_ID, 0)

    assert party["bob"].authenticators() == before


def test_take_back__a_commit_that_is_gone__goes_back_once(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    before = party["bob"].authenticators()
    update(party["alice"])
    party.settle()
    [old] = (taken_apart(each, CHAIN, 1, BEGIN_NS + SECOND_NS) for each in party.logs.chain())
    bob = party["bob"].groups
    assert bob.have_applied([old])
    # The same commit in another block, as another process has applied it.
    later = replace(old, originator_ns=old.originator_ns + 1)
    assert not bob.have_applied([old, later])
    assert bob.take_back(GROUP_ID, [later]) is False

    assert bob.take_back(GROUP_ID, [old]) is True
    assert party["bob"].authenticators() == before
    assert not bob.have_applied([old])
    assert bob.take_back(GROUP_ID, [old]) is False


def test_take_back__another_process_made_its_successor_final__changes_nothing(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    bob = party["bob"]
    [data] = party.logs.chain()
    bob.groups.retract(GROUP_ID, 0)
    bob.groups.apply(GROUP_ID, [taken_apart(data, CHAIN, 1, BEGIN_NS + 9 * SECOND_NS)])
    bob.groups.finalize(GROUP_ID, 1)
    before = bob.authenticators()

    gone = taken_apart(data, CHAIN, 1, BEGIN_NS + SECOND_NS)
    assert bob.groups.take_back(GROUP_ID, [gone]) is False

    assert bob.authenticators() == before
