import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from chainkit.errors import RefusedUpdate
from chainkit.identity import update as update_module
from chainkit.identity import validation
from chainkit.identity.signed import Signed, check, read_signature
from chainkit.identity.state import AssociationState
from chainkit.identity.text import SignedText
from chainkit.identity.update import MAXIMUM_ACTIONS, MAXIMUM_UPDATE_LENGTH
from chainkit.identity.validation import restore, validate
from chainkit.protocol.proto.identity_associations_pb2 import Signature
from chainkit.protocol.strict import MOST_FIELDS
from support.identity import (
    AT_NS,
    Installation,
    Silent,
    Step,
    Wallet,
    add,
    create,
    inbox_of,
    revoke,
    update,
)

ALICE, APP = Wallet("alice"), Installation("app")
INBOX = inbox_of(ALICE)
CREATION = update(INBOX, create(ALICE), add(APP, ALICE))


def lines_run(function: Callable[[], object]) -> int:
    """How many lines of Python a call runs: its work, the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


WALLETS = [Wallet(f"wallet {number}") for number in range(MAXIMUM_ACTIONS)]


def additions(count: int) -> bytes:
    return update(INBOX, *(add(each, ALICE) for each in WALLETS[:count]), at_ns=AT_NS * 2)


def crowded(count: int) -> AssociationState:
    """An inbox of many wallets."""
    state = validate(None, INBOX, CREATION).state
    return validate(state, INBOX, additions(count)).state


def revocations(count: int) -> bytes:
    return update(INBOX, *(revoke(each, ALICE) for each in WALLETS[:count]), at_ns=AT_NS * 3)


HALF = MAXIMUM_ACTIONS // 2


@pytest.mark.conforms("I15")
def test_validate__twice_as_many_additions__are_twice_the_work() -> None:
    state = validate(None, INBOX, CREATION).state
    halves, wholes = additions(HALF), additions(MAXIMUM_ACTIONS)

    half = lines_run(lambda: validate(state, INBOX, halves))
    whole = lines_run(lambda: validate(state, INBOX, wholes))

    assert whole < 2.2 * half


@pytest.mark.conforms("I15")
def test_validate__twice_as_many_members_revoked__are_twice_the_work() -> None:
    half_crowd, crowd = crowded(HALF), crowded(MAXIMUM_ACTIONS)
    halves, wholes = revocations(HALF), revocations(MAXIMUM_ACTIONS)

    half = lines_run(lambda: validate(half_crowd, INBOX, halves))
    whole = lines_run(lambda: validate(crowd, INBOX, wholes))

    assert whole < 2.2 * half


@pytest.mark.conforms("I15")
def test_restore__twice_as_many_updates__are_twice_the_work() -> None:
    def history(count: int) -> list[bytes]:
        later = (
            update(INBOX, add(each, APP), at_ns=AT_NS + number * 10**9)
            for number, each in enumerate(WALLETS[:count], start=1)
        )
        return [CREATION, *later]

    halves, wholes = history(30), history(60)

    half = lines_run(lambda: restore(halves))
    whole = lines_run(lambda: restore(wholes))

    assert whole < 2.2 * half


@pytest.mark.conforms("I15")
def test_validate__one_signature_for_all_actions__is_read_and_checked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Signature] = []
    checked: list[Signed] = []

    def counted_read(message: Signature, text: SignedText) -> Signed:
        read.append(message)
        return read_signature(message, text)

    def counted_check(signed: Signed, text: SignedText) -> None:
        checked.append(signed)
        check(signed, text)

    monkeypatch.setattr(update_module, "read_signature", counted_read)
    monkeypatch.setattr(validation, "check", counted_check)
    state = validate(None, INBOX, CREATION).state
    read.clear()
    checked.clear()

    steps = [add(each, APP) for each in WALLETS[:50]]
    validate(state, INBOX, update(INBOX, *steps, at_ns=AT_NS * 2))

    assert len({each.signer for each in checked}) == len(checked) == len(read) == 51


@pytest.mark.conforms("I15")
@pytest.mark.parametrize("field", [b"\x0a\x00", b"\x10\x01"])
def test_validate__longest_update_of_the_shortest_fields__is_refused_before_it_is_walked(
    field: bytes,
) -> None:
    data = field * (MAXIMUM_UPDATE_LENGTH // len(field))

    def judged() -> None:
        with pytest.raises(RefusedUpdate):
            validate(None, INBOX, data)

    assert lines_run(judged) < 1000


def test_validate__update_of_nothing_but_unknown_fields__is_refused_at_the_bound() -> None:
    data = b"\x0a\x00" + b"\x22\x00" * (MAXIMUM_UPDATE_LENGTH // 2 - 1)

    def judged() -> None:
        with pytest.raises(RefusedUpdate, match=f"more than {MOST_FIELDS} repeated"):
            validate(None, INBOX, data)

    assert lines_run(judged) < 20 * MOST_FIELDS


@pytest.mark.conforms("I15")
def test_validate__strangers_update__no_signature_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[Signed] = []
    monkeypatch.setattr(validation, "check", lambda signed, text: checked.append(signed))
    state = validate(None, INBOX, CREATION).state
    checked.clear()
    stranger = Installation("stranger")
    steps: list[Step] = [add(each, stranger) for each in WALLETS[:20]]

    with pytest.raises(RefusedUpdate):
        validate(state, INBOX, update(INBOX, *steps, at_ns=AT_NS * 2))

    assert checked == []


def test_validate__largest_number_of_empty_signatures__is_refused_at_the_first() -> None:
    silent = Silent(ALICE.identifier)
    steps = [add(each, silent, signed_by=silent) for each in WALLETS]

    with pytest.raises(RefusedUpdate, match=r"\(action 1\)"):
        validate(None, INBOX, update(INBOX, *steps))
