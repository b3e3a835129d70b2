"""Which inbox an identifier belongs to, by the rows that judged updates make (XIP-46, XIP-49)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from chainkit.identity.identifiers import MemberIdentifier, MemberKind
from chainkit.identity.validation import validate
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.journal import retract_inboxes
from chainkit_node.storage.inboxes import JudgedUpdate, find_inboxes, record_judged
from support.identity import Wallet
from support.vectors import from_hex, load

ALICE = Wallet("alice").identifier
INBOX, OTHER = b"i" * 32, b"o" * 32
ORIGINATOR = 1


@pytest.fixture(scope="module")
def database() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        schema.metadata.create_all(connection)
        yield connection
    engine.dispose()


@pytest.fixture
def log(database: Connection) -> Connection:
    return emptied(database)


def emptied(database: Connection) -> Connection:
    retract_inboxes(database, ORIGINATOR, 0)
    return database


def add(log: Connection, sequence_id: int, inbox_id: bytes, *added: MemberIdentifier) -> None:
    keys = [(str(each.kind), each.value) for each in added]
    record_judged(log, JudgedUpdate(ORIGINATOR, sequence_id, inbox_id, associated=keys))


def revoke(log: Connection, sequence_id: int, inbox_id: bytes, *gone: MemberIdentifier) -> None:
    keys = [(str(each.kind), each.value) for each in gone]
    record_judged(log, JudgedUpdate(ORIGINATOR, sequence_id, inbox_id, revoked=keys))


def inbox_of(log: Connection, identifier: MemberIdentifier = ALICE) -> bytes | None:
    key = (str(identifier.kind), identifier.value)
    return find_inboxes(log, [key]).get(key)


@pytest.mark.conforms("I14")
def test_find__associated_wallet__is_in_its_inbox_until_it_is_revoked(log: Connection) -> None:
    add(log, 5, INBOX, ALICE)
    assert inbox_of(log) == INBOX

    revoke(log, 8, INBOX, ALICE)
    assert inbox_of(log) is None

    add(log, 9, INBOX, ALICE)
    assert inbox_of(log) == INBOX


@pytest.mark.conforms("I14")
def test_find__wallet_of_two_inboxes__is_in_that_of_the_highest_association(
    log: Connection,
) -> None:
    add(log, 5, INBOX, ALICE)
    add(log, 9, OTHER, ALICE)
    assert inbox_of(log) == OTHER

    revoke(log, 12, OTHER, ALICE)

    assert inbox_of(log) == INBOX


@pytest.mark.conforms("I14")
def test_find__equal_bytes_of_another_kind__are_another_identifier(log: Connection) -> None:
    add(log, 5, INBOX, ALICE)

    assert inbox_of(log, ALICE._replace(kind=MemberKind.INSTALLATION)) is None


def test_record__revocation_in_another_inbox__changes_nothing(log: Connection) -> None:
    add(log, 5, INBOX, ALICE)

    revoke(log, 6, OTHER, ALICE)

    assert inbox_of(log) == INBOX


@pytest.mark.conforms("I14")
@given(st.lists(st.sampled_from([INBOX, OTHER]), max_size=12), st.integers(0, 13))
def test_retract__any_history__is_as_if_the_rest_had_never_come(
    database: Connection, toggled: list[bytes], kept: int
) -> None:
    log = emptied(database)
    joined: dict[bytes, int] = {}
    answers: list[bytes | None] = [None]
    for sequence_id, inbox_id in enumerate(toggled, start=1):
        if inbox_id in joined:
            revoke(log, sequence_id, inbox_id, ALICE)
            del joined[inbox_id]
        else:
            add(log, sequence_id, inbox_id, ALICE)
            joined[inbox_id] = sequence_id
        answers.append(max(joined, key=joined.__getitem__, default=None))
        assert inbox_of(log) == answers[-1]

    retract_inboxes(log, ORIGINATOR, kept)

    assert inbox_of(log) == answers[min(kept, len(toggled))]


@pytest.mark.conforms("I14")
def test_record__updates_of_real_clients__find_gives_what_the_clients_read(log: Connection) -> None:
    sequence_id = 0
    for inbox in load("identity_updates")["inboxes"]:
        inbox_id, state = from_hex(inbox["inbox_id"]), None
        ever: set[MemberIdentifier] = set()
        for case in inbox["cases"]:
            sequence_id += 1
            accepted = validate(state, inbox_id, from_hex(case["update"]))
            state = accepted.state
            revoke(log, sequence_id, inbox_id, *accepted.changes.revoked)
            add(log, sequence_id, inbox_id, *accepted.changes.associated)
            ever.update(each for each in state.members if each.kind is not MemberKind.INSTALLATION)
            now = {str(each) for each in ever if inbox_of(log, each) == inbox_id}
            assert now == set(case["accounts"])
