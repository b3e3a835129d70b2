"""The results of payloads: stored with the state, once, whatever fails in between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.session import Session
from chainkit_client.mls.engine import EngineFailed, MlsEngine, MlsRefused, Received
from chainkit_client.storage import payloads
from chainkit_client.storage.schema import (
    PayloadStatus,
)
from support import mls
from support.client.group_network import (
    BEGIN_NS,
    CHAIN,
    GROUP_ID,
    NODE,
    SECOND_NS,
    taken_apart,
)
from support.client.received import (
    garbage,
    put_commit,
    put_message,
    statuses,
    statuses_of,
)

from .conftest import MakeParty

S = PayloadStatus


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


class ToldEngine:
    """An engine that notes what it was told to begin, and what it was asked."""

    def __init__(self, engine: MlsEngine) -> None:
        self._engine = engine
        self.begun: list[tuple[bytes, bytes]] = []
        self.asked: list[tuple[bytes, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def begin_receive(self, state: bytes, message: bytes) -> None:
        self.begun.append((state, message))

    def receive(self, state: bytes, message: bytes) -> Received:
        self.asked.append((state, message))
        return self._engine.receive(state, message)


def test_apply__several_messages__each_is_begun_while_the_one_before_is_stored(
    make_party: MakeParty,
) -> None:
    party = make_party("alice", "bob")
    bob = party["bob"]
    for number in range(3):
        put_message(party["alice"], b"%d" % number)
    put_message(bob, b"own")
    party.logs.add(NODE, garbage(1, mls.COMMIT))
    put_message(party["alice"], b"last")
    bob.engine = told = ToldEngine(bob.engine)
    bob.restart()

    assert statuses(bob.read()) == [*[S.SUCCEEDED] * 4, S.FAILED, S.SUCCEEDED]

    # Neither an own message, nor one that is refused by its header: the engine is not asked then.
    assert told.begun == told.asked[1:3]
    assert len(told.asked) == 4


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
    with pytest.raises(MlsRefused, match="a key that was not used before"):
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
