from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import MalformedData
from chainkit.identity.address_log import MAXIMUM_LOOKUPS, AddressLog, AddressRow
from chainkit.identity.identifiers import MemberIdentifier, MemberKind
from chainkit.identity.judge import judge
from chainkit.identity.state import Changes
from support.identity import Passkey, Wallet
from support.vectors import from_hex, load

ALICE = Wallet("alice").identifier
PASSKEY = Passkey("alice").identifier
INBOX, OTHER = b"i" * 32, b"o" * 32
ADDED, REVOKED = Changes((ALICE,), ()), Changes((), (ALICE,))


def inbox_of(log: AddressLog, identifier: MemberIdentifier = ALICE) -> bytes | None:
    return log.look_up([(str(identifier), identifier.kind)])[0]


@pytest.mark.conforms("I14")
def test_look_up__associated_wallet__is_in_its_inbox_until_it_is_revoked() -> None:
    log = AddressLog()
    log.record(INBOX, 5, ADDED)
    assert inbox_of(log) == INBOX

    log.record(INBOX, 8, REVOKED)

    assert inbox_of(log) is None
    assert list(log.rows()) == [AddressRow(ALICE, INBOX, 5, 8)]


@pytest.mark.conforms("I14")
def test_look_up__wallet_of_two_inboxes__is_in_that_of_the_highest_association() -> None:
    log = AddressLog()
    # Updates of different inboxes are decided in any order.
    log.record(OTHER, 9, ADDED)
    log.record(INBOX, 5, ADDED)
    assert inbox_of(log) == OTHER

    log.record(OTHER, 12, REVOKED)

    assert inbox_of(log) == INBOX


@pytest.mark.conforms("I14")
@pytest.mark.parametrize("write", [str.upper, str.lower, str.title])
def test_look_up__text_in_any_case__is_the_same_identifier(write: Callable[[str], str]) -> None:
    log = AddressLog()
    log.record(INBOX, 1, Changes((ALICE, PASSKEY), ()))
    asked = [(write(str(each)), each.kind) for each in (ALICE, PASSKEY)]

    assert log.look_up(asked) == [INBOX, INBOX]


@pytest.mark.conforms("I14")
def test_look_up__several__are_answered_in_their_order() -> None:
    log = AddressLog()
    log.record(INBOX, 1, ADDED)
    unknown = (str(Wallet("bob").identifier), MemberKind.ETHEREUM)
    alice = (str(ALICE), MemberKind.ETHEREUM)

    assert log.look_up([unknown, alice, unknown, alice]) == [None, INBOX, None, INBOX]
    assert log.look_up([]) == []


@pytest.mark.conforms("I14")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", MemberKind.ETHEREUM),
        ("alice", MemberKind.ETHEREUM),
        (str(ALICE), MemberKind.PASSKEY),
        (str(PASSKEY), MemberKind.ETHEREUM),
        ("00" * 32, MemberKind.INSTALLATION),
    ],
)
def test_look_up__text_that_is_no_identifier__has_no_inbox(text: str, kind: MemberKind) -> None:
    log = AddressLog()
    log.record(INBOX, 1, Changes((ALICE, PASSKEY), ()))

    assert log.look_up([(text, kind)]) == [None]


@pytest.mark.conforms("I14")
def test_look_up__more_than_one_call_may_ask_for__is_refused() -> None:
    log = AddressLog()
    most = [(str(ALICE), MemberKind.ETHEREUM)] * MAXIMUM_LOOKUPS

    assert len(log.look_up(most)) == 1000
    with pytest.raises(MalformedData, match="look-up: expected up to 1000 identifiers, got 1001"):
        log.look_up([*most, most[0]])


@pytest.mark.conforms("I14")
def test_record__lower_sequence_id__changes_nothing() -> None:
    log = AddressLog()
    log.record(INBOX, 5, ADDED)
    log.record(INBOX, 3, REVOKED)
    assert list(log.rows()) == [AddressRow(ALICE, INBOX, 5)]

    log.record(INBOX, 8, REVOKED)
    log.record(INBOX, 7, ADDED)
    log.record(INBOX, 6, REVOKED)

    assert list(log.rows()) == [AddressRow(ALICE, INBOX, 5, 8)]


@pytest.mark.conforms("I14")
def test_record__same_update_again__changes_nothing() -> None:
    log = AddressLog()
    for _ in range(2):
        log.record(INBOX, 5, ADDED)
        log.record(INBOX, 8, REVOKED)
        log.record(INBOX, 9, ADDED)

    assert list(log.rows()) == [AddressRow(ALICE, INBOX, 5, 8), AddressRow(ALICE, INBOX, 9)]


def test_record__revocation_of_nobody__changes_nothing() -> None:
    log = AddressLog()

    log.record(INBOX, 5, REVOKED)

    assert list(log.rows()) == []


EVENTS = st.lists(st.tuples(st.sampled_from([INBOX, OTHER]), st.booleans()), max_size=12)


@pytest.mark.conforms("I14")
@given(EVENTS, st.integers(0, 13))
def test_take_back__any_history__is_as_if_the_rest_had_never_come(
    events: list[tuple[bytes, bool]], kept: int
) -> None:
    whole, part = AddressLog(), AddressLog()
    for sequence_id, (inbox_id, is_addition) in enumerate(events, start=1):
        changes = ADDED if is_addition else REVOKED
        whole.record(inbox_id, sequence_id, changes)
        if sequence_id <= kept:
            part.record(inbox_id, sequence_id, changes)

    whole.take_back(kept)

    assert set(whole.rows()) == set(part.rows())
    assert inbox_of(whole) == inbox_of(part)


@pytest.mark.conforms("I14")
def test_record__updates_of_real_clients__look_up_gives_what_the_clients_read() -> None:
    log = AddressLog()
    sequence_id = 0
    for inbox in load("identity_updates")["inboxes"]:
        inbox_id, state = from_hex(inbox["inbox_id"]), None
        ever: set[MemberIdentifier] = set()
        for case in inbox["cases"]:
            sequence_id += 1
            accepted = judge(state, inbox_id, from_hex(case["update"]))
            state = accepted.state
            log.record(inbox_id, sequence_id, accepted.changes)
            ever.update(each for each in state.members if each.kind is not MemberKind.INSTALLATION)
            now = {str(each) for each in ever if inbox_of(log, each) == inbox_id}
            assert now == set(case["accounts"])
