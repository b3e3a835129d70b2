"""Payloads of a group's topic: which commit counts, which messages are read, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from chainkit.errors import ReorgTooDeep
from chainkit.protocol.mls.message import parse_message_header
from chainkit.signatures import keccak256
from chainkit_client.groups.building import client_envelope
from chainkit_client.groups.payload import Outcome, Payload, group_topic
from chainkit_client.groups.plaintext import Plaintext, message_id
from chainkit_client.groups.session import Session
from chainkit_client.intents.arguments import AddMembers, KeyUpdate, RemoveMembers
from chainkit_client.mls.engine import PAST_EPOCHS, EngineFailed, MlsEngine, MlsRefused, Received
from chainkit_client.storage import payloads
from chainkit_client.storage.schema import (
    DeliveryStatus,
    IntentState,
    MessageKind,
    PayloadStatus,
)
from support import mls
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    NODE,
    SECOND_NS,
    Device,
    payload_hash_of,
    taken_apart,
)
from support.client.toy_engine import framed

from .conftest import MakeParty

S = PayloadStatus
ADDRESS = b"\x12\x11\0" + GROUP_ID
"""An AuthenticatedData with the group's topic."""


def statuses(outcomes: list[Outcome]) -> list[PayloadStatus]:
    return [each.status for each in outcomes]


def put_commit(device: Device) -> bytes:
    """Let a device publish a key update, and return the ClientEnvelope."""
    device.groups.queue(GROUP_ID, KeyUpdate())
    device.advance()
    return device.network.published[-1].client_envelope


def put_message(device: Device, content: bytes = b"words") -> bytes:
    device.groups.send(GROUP_ID, content, device.now_ns)
    device.advance()
    return device.network.published[-1].client_envelope


def garbage(epoch: int, content_type: int = mls.COMMIT) -> bytes:
    """Bytes that claim to be of an epoch."""
    return client_envelope(
        b"\x12\x11\0" + GROUP_ID, mls.private_message(GROUP_ID, content_type, epoch, b"")
    )


def secret_of(device: Device) -> tuple[int, str]:
    """Epoch and secret of a toy state."""
    with device.store.reading() as connection:
        state = Session.load(connection, device.groups._tools, GROUP_ID).state
    number, secret, _ = json.loads(state)[3][0]
    return number, secret


def forged(device: Device, plaintext: bytes, leaf: int = 0, key: int = 77) -> bytes:
    """A message that a member could have written with any plaintext."""
    epoch, secret = secret_of(device)
    content: dict[str, Any] = {"leaf": leaf, "key": key, "plaintext": plaintext.hex()}
    message = framed(GROUP_ID, epoch, secret, mls.APPLICATION, content, keccak256(ADDRESS))
    return client_envelope(ADDRESS, message)


@pytest.mark.conforms("R1")
def test_apply__commits_of_all_members__each_makes_the_next_epoch(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    for name in ("alice", "bob", "bob", "alice"):
        put_commit(party[name])
        party.settle()

    epochs = party["bob"].groups.epochs(GROUP_ID)

    assert [(each.number, each.previous) for each in epochs] == [
        (5, 4),
        (4, 3),
        (3, 2),
        (2, 1),
        (1, None),
    ]
    assert [each.place for each in epochs] == [(CHAIN, 4), (CHAIN, 3), (CHAIN, 2), (CHAIN, 1), None]


@pytest.mark.conforms("R5")
@pytest.mark.parametrize("epoch", [0, 1, 3, 2**64 - 1])
def test_apply__a_commit_of_another_epoch__is_refused_by_its_header(
    make_party: MakeParty, epoch: int
) -> None:
    party = make_party("alice", "bob")
    put_commit(party["alice"])
    party.settle()
    party.logs.add(CHAIN, garbage(epoch))

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, f"a commit of epoch {epoch} in epoch 2")


@pytest.mark.conforms("R6")
def test_apply__two_commits_of_one_epoch__the_chain_decides_for_all(make_party: MakeParty) -> None:
    party = make_party("alice", "bob", "carol")
    # Each is published before its author read the other's, and is timed by nobody.
    put_commit(party["bob"])
    put_commit(party["alice"])

    party.read()

    histories = [party[name].authenticators()[2] for name in ("alice", "bob", "carol")]
    assert len(set(histories)) == 1
    assert party["bob"].states() == [IntentState.COMMITTED]
    assert party["alice"].states()[-1] is IntentState.TO_SEND


@pytest.mark.conforms("R8")
def test_apply__garbage_claims_the_epoch_first__the_first_valid_commit_wins(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    party.logs.add(CHAIN, garbage(1))
    put_commit(party["alice"])

    outcomes = [statuses(party[name].read()) for name in ("alice", "bob")]

    assert outcomes == [[S.FAILED, S.SUCCEEDED]] * 2
    assert party["alice"].authenticators()[2] == party["bob"].authenticators()[2]


def test_apply__a_commit_in_a_nodes_log__is_refused(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    commit = put_commit(party["alice"])
    party.logs.reorg(0, [])
    party.logs.add(NODE, commit)

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, "a commit belongs to the chain")


@pytest.mark.conforms("R19")
def test_apply__a_proposal_of_another_member__is_discarded(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party.logs.add(CHAIN, garbage(1, mls.PROPOSAL))

    [outcome] = party["bob"].read()

    assert (outcome.status, outcome.reason) == (S.FAILED, "a proposal on its own is discarded")
    assert party["bob"].groups.view(GROUP_ID).epoch == 1


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


def statuses_of(device: Device) -> list[PayloadStatus]:
    return [each.status for each in device.groups.results(GROUP_ID)]


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


class BrokenEngine:
    """An engine that does not answer some payloads."""

    def __init__(self, engine: MlsEngine, failing: int) -> None:
        self._engine = engine
        self.failing = failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def receive(self, state: bytes, message: bytes) -> Received:
        self.failing -= 1
        if self.failing == 0:
            raise EngineFailed("engine", "an answer", "none")
        return self._engine.receive(state, message)


@pytest.mark.conforms("R25")
@pytest.mark.conforms("R26")
def test_apply__engine_fails_at_the_second_of_three__keeps_the_first_and_loses_none(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    for number in range(3):
        put_message(party["alice"], b"%d" % number)
    bob = party["bob"]
    bob.engine = BrokenEngine(bob.engine, 2)
    bob.restart()

    with pytest.raises(EngineFailed):
        bob.read()

    cursor = bob.groups.cursor(group_topic(GROUP_ID))
    assert (cursor[NODE], bob.words(), statuses_of(bob)) == (1, [b"0"], [S.SUCCEEDED])
    assert statuses(bob.read()) == [S.SUCCEEDED, S.SUCCEEDED]
    assert sorted(bob.words()) == [b"0", b"1", b"2"]


@pytest.mark.conforms("R25")
def test_apply__a_message_was_read__its_state_is_stored_with_its_row(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    data = put_message(party["alice"])
    bob = party["bob"]
    bob.read()
    bob.restart()

    with bob.store.reading() as connection:
        state = Session.load(connection, bob.groups._tools, GROUP_ID).state

    assert bob.words() == [b"words"]
    with pytest.raises(MlsRefused, match="a key that is not used up"):
        bob.engine.receive(state, taken_apart(data, NODE, 1, BEGIN_NS).message)


@pytest.mark.conforms("R26")
def test_apply__a_final_failure__moves_the_cursor_and_no_state(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    party.logs.add(NODE, garbage(1, mls.APPLICATION))
    before = party["bob"].groups.view(GROUP_ID)

    [outcome] = party["bob"].read()

    assert outcome.status is S.FAILED
    assert party["bob"].groups.cursor(group_topic(GROUP_ID)) == {NODE: 1}
    assert party["bob"].groups.view(GROUP_ID) == before


@pytest.mark.conforms("R12")
def test_apply__two_payloads_of_one_time__both_are_read_and_the_cursor_is_by_originator(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    for number in range(2):
        put_message(party["alice"], b"%d" % number)
    received = [
        taken_apart(data, one, sequence_id, BEGIN_NS)
        for one, sequence_id, data in party.logs.payloads
    ]
    bob = party["bob"]

    bob.groups.apply(GROUP_ID, received[:1])
    bob.groups.apply(GROUP_ID, received[1:])

    assert sorted(bob.words()) == [b"0", b"1"]
    assert bob.groups.cursor(group_topic(GROUP_ID)) == {NODE: 2}


@pytest.mark.conforms("R28")
def test_apply__a_failure_that_succeeds_after_a_reorg__is_overwritten(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    alice, bob = party["alice"], party["bob"]
    put_commit(party["carol"])
    party.read()
    # Alice knows of a reorg that Bob does not know of yet.
    party.logs.reorg(0, [])
    alice.groups.retract(GROUP_ID, 0)
    put_commit(alice)
    alice.read()
    put_message(alice, b"on the new branch")
    bob.read()
    failed = statuses_of(bob)

    bob.groups.retract(GROUP_ID, 0)
    bob.read()

    assert failed == [S.SUCCEEDED, S.FAILED]
    assert statuses_of(bob) == [S.SUCCEEDED, S.SUCCEEDED]
    assert bob.words() == [b"on the new branch"]


@pytest.mark.conforms("R28")
def test_write_result__a_failure_after_a_success__changes_nothing(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    put_message(party["alice"])
    bob = party["bob"]
    bob.read()
    [result] = bob.groups.results(GROUP_ID)

    with bob.store.writing() as connection:
        payloads.write_result(connection, replace(result, status=S.FAILED, reason="late"))

    assert bob.groups.results(GROUP_ID) == [result]


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


def mls_header(payload: Payload) -> bytes:
    return parse_message_header(payload.message).authenticated_data


@pytest.mark.conforms("C8")
@pytest.mark.parametrize("put", [put_message, put_commit])
def test_apply__other_data_around_a_payload__is_refused(make_party: MakeParty, put: Any) -> None:
    party = make_party("alice", "bob")
    data = put(party["alice"])
    payload = taken_apart(data, CHAIN, 1, BEGIN_NS)

    [outcome] = party["bob"].groups.apply(GROUP_ID, [replace(payload, aad_hash=b"o" * 32)])

    assert outcome.status is S.FAILED
    assert outcome.reason == "its author authenticated another target, topic or cursor"


@pytest.mark.conforms("R4")
def test_apply__a_member_with_another_history__names_the_first_differing_commit(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    for _ in range(3):
        put_commit(party["alice"])
        party.settle()
    history = party["bob"].authenticators()
    told = (b"4" * 32, b"3" * 32, history[2], history[1])
    words = Plaintext(BEGIN_NS, 4, told, b"words").encoded()
    party.logs.add(NODE, forged(party["bob"], words))

    [outcome] = party["bob"].read()

    fork = outcome.fork
    assert fork is not None
    assert (fork.epoch, fork.commit, fork.ours, fork.theirs) == (
        3,
        (CHAIN, 2),
        history[3],
        b"3" * 32,
    )
    assert fork.member == party["alice"].key
    assert party["bob"].groups.group(GROUP_ID).forked_at_epoch == 3


@pytest.mark.conforms("R4")
def test_apply__members_with_one_history__show_no_fork(make_party: MakeParty) -> None:
    party = make_party("alice", "bob")
    for _ in range(5):
        put_commit(party["alice"])
        party.settle()
        put_message(party["alice"], b"words")
        [outcome] = party["bob"].read()
        assert (outcome.status, outcome.fork) == (S.SUCCEEDED, None)

    assert party["bob"].groups.group(GROUP_ID).forked_at_epoch is None


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


@pytest.mark.conforms("R6")
def test_apply__a_hidden_commit_comes_late__what_lies_behind_it_is_read_again(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob", "carol")
    hidden = put_commit(party["alice"])
    shown = put_commit(party["bob"])
    carol = party["carol"]
    carol.groups.apply(GROUP_ID, [taken_apart(shown, CHAIN, 2, BEGIN_NS)])
    party["alice"].read()
    wrong = carol.authenticators()[2]

    [outcome] = carol.groups.apply(GROUP_ID, [taken_apart(hidden, CHAIN, 1, BEGIN_NS)])
    cursor = carol.groups.cursor(group_topic(GROUP_ID))
    [loser] = carol.read()

    assert (outcome.status, outcome.epoch, cursor) == (S.SUCCEEDED, 2, {CHAIN: 1})
    assert loser.status is S.FAILED
    assert carol.authenticators()[2] == party["alice"].authenticators()[2] != wrong


def test_apply__another_payload_where_a_final_one_stood__is_an_error(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    put_commit(party["alice"])
    bob = party["bob"]
    bob.read()
    bob.groups.finalize(GROUP_ID, 1)
    other = taken_apart(garbage(1), CHAIN, 1, BEGIN_NS)

    with pytest.raises(ReorgTooDeep, match="the final payload 1"):
        bob.groups.apply(GROUP_ID, [other])

    assert bob.groups.view(GROUP_ID).epoch == 2


def test_apply__a_flood_of_epochs_to_come__keeps_so_many_and_reads_what_is_real(
    make_party: MakeParty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payloads, "MOST_KEPT", 5)
    party = make_party("alice", "bob")
    commit = put_commit(party["alice"])
    party["alice"].read()
    words = put_message(party["alice"], b"real")
    bob = party["bob"]
    flood = [taken_apart(garbage(99, mls.APPLICATION), NODE, each, 0) for each in range(1, 9)]
    bob.groups.apply(GROUP_ID, flood)
    bob.groups.apply(GROUP_ID, [taken_apart(words, NODE, 9, SECOND_NS)])

    bob.groups.apply(GROUP_ID, [taken_apart(commit, CHAIN, 1, SECOND_NS)])

    assert bob.words() == [b"real"]
    kept = [each for each in bob.groups.results(GROUP_ID) if each.message is not None]
    assert len(kept) <= 5
