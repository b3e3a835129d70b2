"""Welcomes: groups come in as pending, and are joined where their commit stands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import delete, select

from chainkit_client.groups.joining import WelcomePayload
from chainkit_client.groups.session import NoSuchGroup
from chainkit_client.groups.welcome import parse_welcome
from chainkit_client.intents.arguments import AddMembers, KeyUpdate
from chainkit_client.mls.engine import EngineDied
from chainkit_client.storage import schema
from chainkit_client.storage.payloads import PayloadResult, read_results
from chainkit_client.storage.schema import MembershipState, PayloadStatus
from support.client.group_network import BEGIN_NS, GROUP_ID, NODE, Device, Party, epochs_of

from .conftest import MakeParty


def invite(party: Party, by: str, name: str) -> None:
    party[by].groups.queue(GROUP_ID, AddMembers((party[name].key,)))
    party[by].advance()
    party[by].read()
    party[by].advance()


def welcome(device: Device, number: int = 1) -> WelcomePayload:
    """The newest welcome of a device."""
    found = [data for installation, data in device.logs.welcomes if installation == device.key]
    return WelcomePayload(NODE, number, BEGIN_NS + 7, found[-1])


@pytest.mark.conforms("R10")
@pytest.mark.conforms("R29")
def test_take_welcome__a_new_group__is_pending_with_the_welcomes_time(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    invite(party, "alice", "carol")
    carol = party["carol"]

    assert carol.groups.take_welcome(welcome(carol)) == GROUP_ID

    [group] = carol.groups.groups()
    assert (group.id, group.created_at_ns) == (GROUP_ID, BEGIN_NS + 7)
    assert group.membership is MembershipState.PENDING


@pytest.mark.conforms("R10")
@pytest.mark.parametrize("membership", [MembershipState.ALLOWED, MembershipState.REJECTED])
def test_decide__the_user__is_kept_through_another_welcome(
    make_party: MakeParty, membership: MembershipState
) -> None:
    party = make_party("alice", "bob")
    bob = party["bob"]
    bob.groups.decide(GROUP_ID, membership)

    bob.groups.take_welcome(welcome(bob, 99))

    assert bob.groups.group(GROUP_ID).membership is membership
    assert party["alice"].groups.group(GROUP_ID).membership is MembershipState.ALLOWED


def test_decide__no_such_group__is_told(make_party: MakeParty) -> None:
    party = make_party("alice")
    with pytest.raises(NoSuchGroup, match="group 0x6f6f"):
        party["alice"].groups.decide(b"o" * 16, MembershipState.ALLOWED)


def test_take_welcome__its_commit_was_not_read__is_joined_where_it_stands(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    invite(party, "alice", "carol")
    carol = party["carol"]
    carol.groups.take_welcome(welcome(carol))
    before = carol.groups.group(GROUP_ID).epoch

    carol.welcomes_read = 99
    carol.read()

    assert before is None
    assert epochs_of(carol.groups)[0].place == (0, 1)
    assert carol.members() == {"alice", "bob", "carol"}


def test_take_welcome__twice__is_one_group(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    bob = party["bob"]

    again = bob.groups.take_welcome(welcome(bob, 1))
    copy = bob.groups.take_welcome(welcome(bob, 2))

    assert (again, copy) == (None, GROUP_ID)
    assert len(bob.groups.groups()) == 1
    assert bob.groups.view(GROUP_ID).epoch == 1


def test_take_welcome__after_an_old_one__keeps_what_was_used(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party["alice"].groups.send(GROUP_ID, b"words", BEGIN_NS)
    party.settle()
    bob = party["bob"]

    bob.groups.take_welcome(welcome(bob, 2))
    bob.groups.send(GROUP_ID, b"answer", BEGIN_NS)
    party.settle()

    assert sorted(bob.words()) == sorted(party["alice"].words()) == [b"answer", b"words"]


@pytest.mark.parametrize("data", [b"", b"\1\0garbage", b"\2\0"])
def test_take_welcome__bytes_that_open_with_no_key_package__make_no_group(
    make_party: MakeParty, data: bytes
) -> None:
    party = make_party("alice", others=["bob"])
    bob = party["bob"]

    assert bob.groups.take_welcome(WelcomePayload(NODE, 1, BEGIN_NS, data)) is None

    assert bob.groups.groups() == []
    assert bob.groups.cursor(bob.groups.welcome_topic) == {NODE: 1}


def test_take_welcome__to_a_key_package_that_is_gone__makes_no_group(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", others=["bob"])
    bob = party["bob"]
    party["alice"].groups.queue(GROUP_ID, AddMembers((bob.key,)))
    party["alice"].advance()
    with bob.store.writing() as connection:
        connection.execute(delete(schema.key_packages))

    assert bob.groups.take_welcome(welcome(bob)) is None


def test_take_welcome__a_commit_that_was_published__is_named_by_its_hash(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    first = welcome(party["bob"])
    invite(party, "alice", "carol")
    second = welcome(party["carol"])

    assert parse_welcome(first.data).commit_hash is None
    assert (
        parse_welcome(second.data).commit_hash == party["alice"].network.published[-1].payload_hash
    )


def test_take_welcome__a_forged_one_after_a_confirmed_join__does_not_replace_the_group(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    party["alice"].groups.queue(GROUP_ID, KeyUpdate())
    party.settle()
    bob = party["bob"]
    before = bob.authenticators()
    # Mallory makes a group with the same id, and adds Bob there.
    other = Party(bob.path.parent / "..", "mallory")
    bob.offer()
    other.logs.key_packages[bob.key] = party.logs.key_packages[bob.key]
    other["mallory"].groups.queue(GROUP_ID, AddMembers((bob.key,)))
    other["mallory"].advance()
    [(_, data)] = other.logs.welcomes
    other.close()

    assert bob.groups.take_welcome(WelcomePayload(NODE, 50, BEGIN_NS, data)) == GROUP_ID

    assert bob.authenticators() == before
    assert bob.members() == {"alice", "bob"}


def test_welcomes__states_of_what_was_joined__are_deleted_once_it_is_final(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    invite(party, "alice", "carol")
    party.settle()
    carol = party["carol"]
    party["bob"].groups.queue(GROUP_ID, KeyUpdate())
    party.settle()

    def states() -> list[bytes | None]:
        with carol.store.reading() as connection:
            return list(connection.scalars(select(schema.welcomes.c.state)))

    assert None not in states()
    carol.groups.finalize(GROUP_ID, 2)

    assert states() == [None]


def test_take_welcome__another_was_seen_under_its_id_first__is_joined_all_the_same(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    invite(party, "alice", "carol")
    carol = party["carol"]
    true = welcome(carol)

    assert carol.groups.take_welcome(replace(true, data=b"false")) is None
    assert carol.groups.take_welcome(true) == GROUP_ID
    assert carol.groups.take_welcome(replace(true, data=b"false")) is None

    [result] = topic_results(carol)
    assert result.status is PayloadStatus.SUCCEEDED


def test_take_welcome__engine_ends_at_it__is_failed_and_the_next_is_joined(
    make_party: MakeParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    party = make_party("alice", "bob", others=["carol"])
    invite(party, "alice", "carol")
    carol = party["carol"]

    def die(*given: object) -> bytes:
        raise EngineDied("child process", "an answer", "signal SIGABRT")

    with monkeypatch.context() as patch:
        patch.setattr(carol.engine, "join", die)
        assert carol.groups.take_welcome(replace(welcome(carol), data=b"\1\0bad")) is None

    assert carol.groups.take_welcome(welcome(carol, 2)) == GROUP_ID
    failed, joined = topic_results(carol)
    assert (failed.status, joined.status) == (PayloadStatus.FAILED, PayloadStatus.SUCCEEDED)
    assert "SIGABRT" in failed.reason
    # A stranger's welcome to nobody is no invitation.
    assert carol.groups.take_welcome(replace(welcome(carol, 2), sequence_id=9, data=b"x")) is None
    assert carol.groups.unopened_welcomes() == [failed]


def topic_results(device: Device) -> list[PayloadResult]:
    with device.store.reading() as connection:
        return read_results(connection, device.groups.welcome_topic)
