"""Messages of a group: which are read, how often, and what a transcript has of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainkit_client.groups.plaintext import Plaintext, message_id
from chainkit_client.intents.arguments import AddMembers, RemoveMembers
from chainkit_client.mls.engine import PAST_EPOCHS
from chainkit_client.storage.schema import (
    DeliveryStatus,
    MessageKind,
    PayloadStatus,
)
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    NODE,
    payload_hash_of,
    taken_apart,
)
from support.client.received import (
    forged,
    mls_header,
    put_commit,
    put_message,
    statuses,
    statuses_of,
)

from .conftest import MakeParty

S = PayloadStatus


@pytest.mark.conforms("R2")
@pytest.mark.parametrize(("commits", "expected"), [(3, S.SUCCEEDED), (4, S.FAILED)])
def test_apply__a_message_of_an_earlier_epoch__is_read_while_its_keys_are_kept(
    make_party: MakeParty, commits: int, expected: PayloadStatus
) -> None:
    party = make_party("alice", "bob")
    late = put_message(party["alice"])
    party.logs.payloads.clear()
    for _ in range(commits):
        put_commit(party["bob"])
        party["bob"].read()
    party.logs.add(NODE, late)

    outcomes = party["bob"].read()

    assert commits == PAST_EPOCHS + (expected is S.FAILED)
    assert statuses(outcomes) == [expected]


@pytest.mark.conforms("R3")
def test_apply__a_message_of_a_later_epoch__waits_for_the_commit(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    commit = put_commit(party["alice"])
    party["alice"].read()
    put_message(party["alice"], b"after the commit")
    party.logs.payloads.sort(reverse=True)
    party.logs.payloads = [each for each in party.logs.payloads if each[0] == NODE]

    [waiting] = party["bob"].read()
    words = party["bob"].words()
    party.logs.payloads.append((CHAIN, 1, commit))
    party["bob"].read()

    assert (waiting.status, words) == (S.WAITING, [])
    assert party["bob"].words() == [b"after the commit"]
    assert statuses_of(party["bob"]) == [S.SUCCEEDED, S.SUCCEEDED]


@pytest.mark.conforms("R24")
def test_apply__the_same_payload_again__is_not_decrypted_again(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    put_message(party["alice"])
    bob = party["bob"]
    bob.read()
    [(originator_id, sequence_id, data)] = party.logs.payloads
    payload = taken_apart(data, originator_id, sequence_id, BEGIN_NS)

    [again] = bob.groups.apply(GROUP_ID, [payload])

    assert (again.status, again.is_repeated) == (S.SUCCEEDED, True)
    assert bob.words() == [b"words"]


def test_apply__a_copy_through_another_originator__is_shown_once(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    data = put_message(party["alice"])
    party.logs.add(200, data)

    outcomes = party["bob"].read()

    assert statuses(outcomes) == [S.SUCCEEDED, S.FAILED]
    assert party["bob"].words() == [b"words"]


def test_apply__two_messages_that_a_node_signed_under_one_id__are_both_read_once(
    make_party: MakeParty,
) -> None:
    """Each of the two may be the one that others got, and its sender has a signature for."""
    party = make_party("alice", "bob")
    words = put_message(party["alice"], b"one"), put_message(party["alice"], b"two")
    one, two = (taken_apart(each, NODE, 1, BEGIN_NS) for each in words)
    junk = replace(one, message=one.message[:-1] + bytes([one.message[-1] ^ 1]))
    bob = party["bob"]

    first = bob.groups.apply(GROUP_ID, [junk])
    later = bob.groups.apply(GROUP_ID, [one, two])
    again = bob.groups.apply(GROUP_ID, [two, one, junk])

    assert statuses([*first, *later]) == [S.FAILED, S.SUCCEEDED, S.SUCCEEDED]
    assert all(each.is_repeated for each in again)
    assert sorted(bob.words()) == [b"one", b"two"]


@pytest.mark.conforms("R11")
def test_messages__on_all_devices__have_the_same_ids_and_the_senders_time(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    identity = party["alice"].groups.send(GROUP_ID, b"words", BEGIN_NS + 5)
    party.settle()

    rows = [
        each
        for name in ("alice", "bob", "carol")
        for each in party[name].groups.messages(GROUP_ID)
        if each.content == b"words"
    ]

    assert len(rows) == 3
    assert {each.id for each in rows} == {identity, message_id(b"words", GROUP_ID, BEGIN_NS + 5)}
    assert {each.sent_at_ns for each in rows} == {BEGIN_NS + 5}
    assert {each.sender for each in rows} == {party["alice"].key}


@pytest.mark.conforms("R18")
def test_messages__members_come_and_go__are_rows_of_their_kinds(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", others=["carol"])
    alice, bob, carol = (party[name] for name in ("alice", "bob", "carol"))
    alice.groups.queue(GROUP_ID, AddMembers((carol.key,)))
    party.settle()
    put_message(bob)
    party.settle()
    bob.groups.queue(GROUP_ID, RemoveMembers((carol.key,)))
    party.settle()

    rows = alice.groups.messages(GROUP_ID)
    kinds = [(each.kind, each.sender) for each in sorted(rows, key=lambda each: each.epoch or 0)]

    assert sorted(kinds) == sorted(
        [
            (MessageKind.MEMBER_ADDED, alice.key),
            (MessageKind.MEMBER_ADDED, alice.key),
            (MessageKind.APPLICATION, bob.key),
            (MessageKind.MEMBER_REMOVED, bob.key),
        ]
    )
    gone = next(each for each in rows if each.kind is MessageKind.MEMBER_REMOVED)
    assert gone.changed_installation == carol.key
    # Bob has no row of his own coming.
    ids = {each.id for each in rows}, {each.id for each in bob.groups.messages(GROUP_ID)}
    assert (len(ids[0] - ids[1]), ids[1] - ids[0]) == (1, set())


@pytest.mark.conforms("R27")
def test_messages__another_process_read_them__are_what_the_database_holds(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    put_message(party["alice"])
    bob = party["bob"]
    bob.read()
    bob.restart()

    assert bob.read() == []
    assert bob.words() == [b"words"]


@pytest.mark.conforms("C8")
def test_build__messages_and_commits__authenticate_the_data_around_them(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    published = [put_message(party["alice"]), put_commit(party["alice"])]

    received = [taken_apart(data, CHAIN, 1, BEGIN_NS) for data in published]

    assert [mls_header(each) for each in received] == [each.aad_hash for each in received]


@pytest.mark.conforms("C8")
@pytest.mark.parametrize("put", [put_message, put_commit])
def test_apply__other_data_around_a_payload__is_refused(make_party: MakeParty, put: Any) -> None:
    party = make_party("alice", "bob")
    data = put(party["alice"])
    payload = taken_apart(data, CHAIN, 1, BEGIN_NS)

    [outcome] = party["bob"].groups.apply(GROUP_ID, [replace(payload, aad_hash=b"o" * 32)])

    assert outcome.status is S.FAILED
    assert outcome.reason == "its author authenticated another target, topic or cursor"


def test_apply__a_plaintext_of_another_version__fails_and_uses_its_key_up(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    party.logs.add(NODE, forged(party["bob"], b"\2 of a later version"))
    party.logs.add(NODE, forged(party["bob"], Plaintext(1, 1, (b"e" * 32,), b"again").encoded()))

    outcomes = party["bob"].read()

    assert statuses(outcomes) == [S.FAILED, S.FAILED]
    assert "version 1" in outcomes[0].reason
    assert party["bob"].words() == []


def test_apply__anothers_words_and_time__do_not_replace_the_message(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    put_message(party["alice"], b"words")
    party["bob"].read()
    [row] = [each for each in party["bob"].groups.messages(GROUP_ID) if each.content == b"words"]
    copied = Plaintext(row.sent_at_ns, 1, (party["bob"].authenticators()[1],), b"words").encoded()
    party.logs.add(NODE, forged(party["bob"], copied, leaf=2))

    [outcome] = party["bob"].read()

    assert outcome.status is S.FAILED
    [kept] = [each for each in party["bob"].groups.messages(GROUP_ID) if each.content == b"words"]
    assert kept.sender == party["alice"].key


def test_apply__own_message_read_back__is_published_where_it_stands(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    data = put_message(party["alice"])
    party["alice"].read()

    [row] = [each for each in party["alice"].groups.messages(GROUP_ID) if each.content == b"words"]

    assert (row.delivery, row.epoch, row.place) == (DeliveryStatus.PUBLISHED, 1, (NODE, 1))
    assert party["alice"].intent().payload_hash == payload_hash_of(data)
