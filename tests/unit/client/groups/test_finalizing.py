"""Finality: states, intents and staged commits do not outlive what is final."""

from __future__ import annotations

from sqlalchemy import func, select

from chainkit_client.intents.arguments import KeyUpdate, RemoveMembers
from chainkit_client.storage import schema
from chainkit_client.storage.schema import DeliveryStatus, IntentState
from support.client.group_network import CHAIN, GROUP_ID, Device, histories, update

from .conftest import MakeParty

S = IntentState


def states_kept(device: Device) -> set[int]:
    """The epochs whose states are kept."""
    with device.store.reading() as connection:
        return set(connection.scalars(select(schema.group_states.c.epoch)))


def test_finalize__commits_are_final__deletes_the_states_before_them(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    for _ in range(4):
        update(party["alice"])
        party.settle()
    bob = party["bob"]
    assert states_kept(bob) == {1, 2, 3, 4, 5}

    bob.groups.finalize(GROUP_ID, 2)
    assert states_kept(bob) == {3, 4, 5}
    bob.groups.retract(GROUP_ID, 2)
    bob.read()
    bob.groups.finalize(GROUP_ID, 4)

    assert states_kept(bob) == {5}
    update(party["bob"])
    party.settle()
    assert len(histories(party, "alice", "bob")) == 1


def test_finalize__a_branch_that_lost__is_deleted_with_its_states(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    update(party["alice"])
    party.settle()
    party.reorg(0, [])
    update(party["bob"])
    party.settle()
    carol = party["carol"]
    with carol.store.reading() as connection:
        states = schema.group_states
        both = connection.scalar(select(func.count()).where(states.c.epoch == 2))

    carol.groups.finalize(GROUP_ID, party.logs.last[CHAIN])

    assert both == 2
    with carol.store.reading() as connection:
        [kept] = connection.scalars(select(schema.group_states.c.authenticator))
    assert kept == carol.groups.view(GROUP_ID).epoch_authenticator


def test_finalize__own_commits__lose_what_was_staged_for_them(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    update(party["bob"])
    party.settle()

    party["alice"].groups.finalize(GROUP_ID, 1)

    with party["alice"].store.reading() as connection:
        rows = connection.execute(
            select(schema.attempts.c.epoch, schema.attempts.c.staged_commit)
        ).all()
    assert {(epoch, staged) for epoch, staged in rows} == {(0, None), (1, None)}


def test_finalize__a_removal_of_this_installation__ends_its_intents(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    carol = party["carol"]
    party["alice"].groups.queue(GROUP_ID, RemoveMembers((carol.key,)))
    party["alice"].advance()
    carol.groups.send(GROUP_ID, b"too late", 1)
    carol.groups.queue(GROUP_ID, KeyUpdate())
    carol.read()
    carol.advance()
    before = carol.states()

    carol.groups.finalize(GROUP_ID, 1)

    assert before == [S.TO_SEND, S.TO_SEND]
    assert carol.states() == [S.ERROR, S.ERROR]
    [row] = [each for each in carol.groups.messages(GROUP_ID) if each.content == b"too late"]
    assert row.delivery is DeliveryStatus.FAILED


def test_finalize__the_file_afterwards__holds_no_deleted_state(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    update(party["alice"])
    party.settle()
    bob = party["bob"]
    with bob.store.reading() as connection:
        query = select(schema.group_states.c.state).where(schema.group_states.c.epoch == 1)
        [sealed] = connection.scalars(query)
    party["bob"].groups.queue(GROUP_ID, KeyUpdate())

    bob.groups.finalize(GROUP_ID, 1)

    for file in bob.path.parent.glob("bob.db*"):
        assert sealed[:40] not in file.read_bytes()
