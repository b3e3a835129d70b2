"""The intent machine: its table, and the UPDATEs that keep to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, update

from chainkit.errors import MalformedData
from chainkit_client.intents import rows
from chainkit_client.intents.arguments import (
    AddMembers,
    Arguments,
    KeyUpdate,
    RemoveMembers,
    SendMessage,
    decode_arguments,
    encode_arguments,
)
from chainkit_client.intents.machine import (
    TRANSITIONS,
    Event,
    IllegalTransition,
    is_given_up,
    is_too_old,
    next_state,
    sources,
)
from chainkit_client.intents.rows import Built
from chainkit_client.storage import schema
from chainkit_client.storage.schema import IntentKind, IntentState, WelcomeState
from chainkit_client.storage.store import Store

S, E = IntentState, Event
GROUP_ID = b"g" * 16
ALICE, BOB = b"a" * 32, b"b" * 32
ALL = [SendMessage(5, b"words"), AddMembers((ALICE, BOB)), RemoveMembers((BOB,)), KeyUpdate()]
TABLE = {
    (S.TO_SEND, E.BUILT): S.PUBLISHED,
    (S.TO_SEND, E.NOTHING_TO_DO): S.PROCESSED,
    (S.TO_SEND, E.UNBUILT): S.TO_SEND,
    (S.TO_SEND, E.GIVEN_UP): S.ERROR,
    (S.TO_SEND, E.OWN_READ): S.COMMITTED,
    (S.PUBLISHED, E.OUTCOME_UNKNOWN): S.PUBLISHED,
    (S.PUBLISHED, E.TAKEN): S.PUBLISHED,
    (S.PUBLISHED, E.CONFLICTED): S.TO_SEND,
    (S.PUBLISHED, E.REFUSED): S.TO_SEND,
    (S.PUBLISHED, E.OWN_READ): S.COMMITTED,
    (S.PUBLISHED, E.EPOCH_OVER): S.TO_SEND,
    (S.PUBLISHED, E.RETRACTED): S.TO_SEND,
    (S.COMMITTED, E.FOLLOWED_UP): S.PROCESSED,
    (S.COMMITTED, E.RETRACTED): S.TO_SEND,
    (S.PROCESSED, E.RETRACTED): S.TO_SEND,
    (S.ERROR, E.OWN_READ): S.COMMITTED,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "client.db", "password", 2)
    with opened.writing() as connection:
        row = {"id": GROUP_ID, "created_at_ns": 1, "membership_state": 1}
        connection.execute(
            insert(schema.groups).values(row | {"is_published": True, "is_member": True})
        )
    yield opened
    opened.close()


def queued(store: Store, connection: Connection, state: IntentState = S.TO_SEND) -> int:
    intent_id = rows.queue(connection, store.seal, GROUP_ID, KeyUpdate())
    is_it = schema.group_intents.c.id == intent_id
    connection.execute(update(schema.group_intents).where(is_it).values(state=state.value))
    return intent_id


def built(number: int = 1) -> Built:
    return Built(bytes([number]) * 32, b"envelope", 3, b"e" * 32, 5, b"staged", b"welcomes")


@pytest.mark.conforms("R15")
@pytest.mark.parametrize(("state", "event"), list(product(IntentState, Event)))
def test_move__each_event_in_each_state__is_as_tabled_or_changes_nothing(
    store: Store, state: IntentState, event: Event
) -> None:
    with store.writing() as connection:
        intent_id = queued(store, connection, state)
        other_id = queued(store, connection, S.TO_SEND)
        target = TABLE.get((state, event))
        if target is None:
            with pytest.raises(IllegalTransition):
                rows.move(connection, intent_id, event, reason="changed")
        else:
            assert rows.move(connection, intent_id, event, reason="changed") is target
        intents = schema.group_intents.c
        query = select(intents.id, intents.state, intents.reason).order_by(intents.id)
        found = [tuple(row) for row in connection.execute(query)]

    moved = (intent_id, (target or state).value, "" if target is None else "changed")
    assert found == [moved, (other_id, S.TO_SEND.value, "")]


def test_next_state__the_whole_table__is_the_one_of_the_issue() -> None:
    assert dict(TRANSITIONS) == TABLE
    assert all(next_state(*key) is target for key, target in TABLE.items())


@pytest.mark.parametrize("event", Event)
def test_sources__each_event__leads_to_one_state(event: Event) -> None:
    assert sources(event)
    assert len({next_state(state, event) for state in sources(event)}) == 1


def test_move__no_such_intent__is_told(store: Store) -> None:
    with store.writing() as connection, pytest.raises(IllegalTransition, match="intent 7"):
        rows.move(connection, 7, Event.BUILT)


@pytest.mark.conforms("R16")
@pytest.mark.parametrize("arguments", ALL)
def test_queue__each_kind__keeps_its_arguments_and_waits(
    store: Store, arguments: Arguments
) -> None:
    with store.writing() as connection:
        intent_id = rows.queue(connection, store.seal, GROUP_ID, arguments)
        intent = rows.read_intent(connection, store.seal, intent_id)

    assert intent is not None
    assert (intent.state, intent.kind, intent.arguments) == (S.TO_SEND, arguments.kind, arguments)


def test_kinds__all__are_four() -> None:
    assert {each.kind for each in ALL} == set(IntentKind)


@pytest.mark.parametrize("arguments", ALL)
def test_decode_arguments__what_was_encoded__is_the_same(arguments: Arguments) -> None:
    assert decode_arguments(encode_arguments(arguments)) == arguments


def test_encode_arguments__key_of_another_length__is_refused() -> None:
    with pytest.raises(MalformedData, match="expected 32 bytes, got 31 bytes"):
        encode_arguments(AddMembers((ALICE, b"b" * 31)))


def test_queue__the_words_of_a_message__are_sealed(store: Store) -> None:
    with store.writing() as connection:
        rows.queue(connection, store.seal, GROUP_ID, SendMessage(5, b"very secret words"))
        data = connection.scalar(select(schema.group_intents.c.data))

    assert data is not None
    assert b"very secret words" not in data


@pytest.mark.conforms("R14")
def test_give_back__a_built_intent__clears_the_payload_and_keeps_the_arguments(
    store: Store,
) -> None:
    with store.writing() as connection:
        arguments = AddMembers((ALICE,))
        intent_id = rows.queue(connection, store.seal, GROUP_ID, arguments)
        rows.publish(
            connection, store.seal, rows.existing_intent(connection, store.seal, intent_id), built()
        )
        before = rows.existing_intent(connection, store.seal, intent_id)
        rows.give_back(connection, intent_id, Event.EPOCH_OVER)
        after = rows.existing_intent(connection, store.seal, intent_id)

    assert (before.client_envelope, before.payload_hash) == (b"envelope", b"\1" * 32)
    assert (before.published_in_epoch, before.publish_attempts) == (3, 1)
    assert (after.client_envelope, after.payload_hash) == (b"", None)
    assert after.published_in_epoch is None
    assert (after.arguments, after.publish_attempts) == (arguments, 1)


@pytest.mark.conforms("R13")
def test_publish__again_after_a_conflict__keeps_each_payload_that_was_built(store: Store) -> None:
    with store.writing() as connection:
        intent_id = rows.queue(connection, store.seal, GROUP_ID, KeyUpdate())
        for number in (1, 2):
            intent = rows.existing_intent(connection, store.seal, intent_id)
            rows.publish(connection, store.seal, intent, built(number))
            if number == 1:
                rows.give_back(connection, intent_id, Event.EPOCH_OVER)
        attempts = [
            rows.read_attempt(connection, store.seal, bytes([number]) * 32) for number in (1, 2, 3)
        ]
        intent = rows.existing_intent(connection, store.seal, intent_id)

    assert [each and each.intent_id for each in attempts] == [intent_id, intent_id, None]
    assert attempts[0] is not None
    assert (attempts[0].staged_commit, attempts[0].welcomes) == (b"staged", b"welcomes")
    assert (intent.payload_hash, intent.publish_attempts) == (b"\2" * 32, 2)


def test_publish__of_an_intent_that_is_out__stores_no_attempt(store: Store) -> None:
    with store.writing() as connection:
        intent_id = rows.queue(connection, store.seal, GROUP_ID, KeyUpdate())
        intent = rows.existing_intent(connection, store.seal, intent_id)
        rows.publish(connection, store.seal, intent, built(1))

    with pytest.raises(IllegalTransition), store.writing() as connection:
        rows.publish(connection, store.seal, intent, built(2))

    with store.reading() as connection:
        assert rows.read_attempt(connection, store.seal, b"\2" * 32) is None


def test_forget_final__attempts_of_before__lose_their_secrets_and_keep_their_hashes(
    store: Store,
) -> None:
    with store.writing() as connection:
        intent_id = rows.queue(connection, store.seal, GROUP_ID, KeyUpdate())
        intent = rows.existing_intent(connection, store.seal, intent_id)
        rows.publish(connection, store.seal, intent, built())
        rows.forget_final(connection, GROUP_ID, 3)
        kept = rows.read_attempt(connection, store.seal, b"\1" * 32)
        rows.forget_final(connection, GROUP_ID, 4)
        gone = rows.read_attempt(connection, store.seal, b"\1" * 32)

    assert kept is not None
    assert (kept.staged_commit, kept.welcomes) == (b"staged", b"welcomes")
    assert gone is not None
    assert (gone.staged_commit, gone.welcomes) == (None, None)


def test_forget_final__welcomes_that_were_not_sent__stay(store: Store) -> None:
    with store.writing() as connection:
        intent_id = rows.queue(connection, store.seal, GROUP_ID, KeyUpdate())
        intent = rows.existing_intent(connection, store.seal, intent_id)
        rows.publish(connection, store.seal, intent, built())
        rows.change_welcomes(connection, b"\1" * 32, WelcomeState.READY_TO_SEND)
        rows.forget_final(connection, GROUP_ID, 4)
        [ready] = rows.read_ready_welcomes(connection, store.seal, GROUP_ID)

    assert (ready.staged_commit, ready.welcomes) == (None, b"welcomes")


@pytest.mark.parametrize(("refusals", "expected"), [(0, False), (2, False), (3, True), (4, True)])
def test_is_given_up__so_many_refusals__at_the_third(refusals: int, expected: bool) -> None:
    assert is_given_up(refusals) is expected


@pytest.mark.parametrize(("current", "expected"), [(5, False), (7, False), (8, True), (9, True)])
def test_is_too_old__a_message_of_epoch_5__once_others_may_lose_its_keys(
    current: int, expected: bool
) -> None:
    assert is_too_old(5, current, past_epochs=3) is expected
