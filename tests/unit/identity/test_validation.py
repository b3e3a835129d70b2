from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.errors import ChainError, EndpointUnavailable, RefusedUpdate, WalletUnanswered
from chainkit.identity.refusals import Refusal
from chainkit.identity.state import Accepted, AssociationState
from chainkit.identity.update import (
    MAXIMUM_ACTIONS,
    MAXIMUM_TIMESTAMP,
    MAXIMUM_UPDATE_LENGTH,
    read_update,
)
from chainkit.identity.validation import MAXIMUM_PROOFS, MAXIMUM_WALLETS, restore, validate
from chainkit.identity.wallets import NO_WALLETS, Wallets, WalletSignature
from chainkit.protocol.proto.identity_associations_pb2 import IdentityUpdate
from support.identity import (
    AT_NS,
    Changed,
    ContractWallet,
    Installation,
    LegacyKey,
    Passkey,
    Silent,
    Step,
    Wallet,
    add,
    change_recovery,
    create,
    edited,
    inbox_of,
    revoke,
    update,
)
from support.vectors import case_name, from_hex, load

INBOXES = load("identity_updates")["inboxes"]
CASES = [case for inbox in INBOXES for case in inbox["cases"]]

ALICE, BOB = Wallet("alice"), Wallet("bob")
APP = Installation("app")
SAFE = ContractWallet("safe")
INBOX = inbox_of(ALICE)
CREATION = update(INBOX, create(ALICE), add(APP, ALICE))
CREATED = validate(None, INBOX, CREATION).state


def reason(
    data: bytes,
    state: AssociationState | None = None,
    inbox_id: bytes = INBOX,
    wallets: Wallets = NO_WALLETS,
) -> Refusal:
    """Why an update is refused; the error's message stays readable."""
    with pytest.raises(RefusedUpdate) as caught:
        validate(state, inbox_id, data, wallets)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    return Refusal(caught.value.reason)


def later(*steps: Step) -> bytes:
    return update(INBOX, *steps, at_ns=AT_NS * 2)


# --------------------------------------------------------- what clients recorded


def judged(inbox: dict[str, Any]) -> list[Accepted]:
    found: list[Accepted] = []
    for case in inbox["cases"]:
        state = found[-1].state if found else None
        found.append(validate(state, from_hex(inbox["inbox_id"]), from_hex(case["update"])))
    return found


@pytest.mark.conforms("I2", "I3", "I6", "I9", "I10")
@pytest.mark.parametrize("inbox", INBOXES)
def test_validate__updates_of_real_clients__give_the_states_that_the_clients_read(
    inbox: dict[str, Any],
) -> None:
    for case, accepted in zip(inbox["cases"], judged(inbox), strict=True):
        state = accepted.state
        assert str(state.recovery) == case["recovery"]
        expected = [*case["accounts"], *case["installations"]]
        assert sorted(map(str, state.members)) == sorted(expected)


@pytest.mark.parametrize("case", [case for case in CASES if case["text"]], ids=case_name)
def test_read_update__recorded_update__has_the_text_that_the_client_signed(
    case: dict[str, Any],
) -> None:
    assert read_update(from_hex(case["update"])).text.text.decode() == case["text"]


@pytest.mark.parametrize("inbox", INBOXES)
def test_restore__updates_of_real_clients__give_the_state_of_judging(
    inbox: dict[str, Any],
) -> None:
    updates = [from_hex(case["update"]) for case in inbox["cases"]]

    assert restore(updates) == judged(inbox)[-1].state


@pytest.mark.conforms("I5")
@pytest.mark.parametrize("inbox", INBOXES)
def test_validate__recorded_update_again__is_refused(inbox: dict[str, Any]) -> None:
    state = judged(inbox)[-1].state

    for case in inbox["cases"]:
        data = from_hex(case["update"])
        again = reason(data, state, from_hex(inbox["inbox_id"]))
        assert again in (Refusal.ALREADY_CREATED, Refusal.SIGNATURE_USED)


@given(st.sampled_from(INBOXES), st.data())
def test_validate__recorded_update_with_any_byte_changed__is_refused(
    inbox: dict[str, Any], data: st.DataObject
) -> None:
    states = [None, *(accepted.state for accepted in STATES[inbox["inbox_id"]])]
    index = data.draw(st.integers(0, len(inbox["cases"]) - 1))
    changed = bytearray(from_hex(inbox["cases"][index]["update"]))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    before = states[index]

    try:
        accepted = validate(before, from_hex(inbox["inbox_id"]), bytes(changed))
    except RefusedUpdate as error:
        assert error.reason in tuple(Refusal)
    else:
        # No signature is over the sub-second part of the time, and none over V's spelling.
        assert list(accepted.state.members) == list(states[index + 1].members)


STATES = {inbox["inbox_id"]: judged(inbox) for inbox in INBOXES}


# ------------------------------------------------------------------------ bytes


@pytest.mark.conforms("I1")
@pytest.mark.parametrize(
    "data", [b"\xff", CREATION[:-1], CREATION + b"\x10\x01", b"\x0a\x00\x18\x01"]
)
def test_validate__bytes_that_are_no_update__are_refused(data: bytes) -> None:
    assert reason(data) is Refusal.MALFORMED


@pytest.mark.conforms("I1")
def test_validate__update_without_an_action__is_refused() -> None:
    assert reason(update(INBOX)) is Refusal.NO_ACTION


@pytest.mark.conforms("I1")
def test_validate__update_on_the_topic_of_another_inbox__is_refused() -> None:
    assert reason(CREATION, inbox_id=inbox_of(BOB)) is Refusal.WRONG_TOPIC


def first(message: IdentityUpdate) -> Any:
    return message.actions[0]


@pytest.mark.conforms("I1")
@pytest.mark.parametrize(
    "edit",
    [
        lambda message: first(message).Clear(),
        lambda message: setattr(message, "inbox_id", message.inbox_id.upper()),
        lambda message: setattr(message, "client_timestamp_ns", MAXIMUM_TIMESTAMP + 1),
        lambda message: setattr(first(message).create_inbox, "initial_identifier", "alice"),
        lambda message: setattr(
            first(message).create_inbox,
            "initial_identifier",
            first(message).create_inbox.initial_identifier.upper(),
        ),
        lambda message: setattr(first(message).create_inbox, "initial_identifier_kind", 2),
        lambda message: setattr(first(message).create_inbox, "initial_identifier_kind", 3),
        lambda message: message.actions[1].add.new_member_identifier.Clear(),
        lambda message: setattr(
            message.actions[1].add.new_member_identifier, "installation_public_key", b"k" * 31
        ),
    ],
)
def test_validate__update_with_a_part_missing_or_of_another_form__is_refused(
    edit: Callable[[IdentityUpdate], object],
) -> None:
    assert reason(edited(CREATION, edit)) is Refusal.MALFORMED


def test_validate__kind_of_the_initial_identifier_left_out__is_a_wallet() -> None:
    data = edited(
        CREATION, lambda message: first(message).create_inbox.ClearField("initial_identifier_kind")
    )

    assert validate(None, INBOX, data).state == CREATED


@pytest.mark.parametrize(
    "step", [add(BOB, Silent(ALICE.identifier)), revoke(APP, Silent(ALICE.identifier))]
)
def test_validate__signature_left_out__is_refused(step: Step) -> None:
    assert reason(later(step), CREATED) is Refusal.SIGNATURE_INVALID


def test_validate__new_recovery_identifier_with_lines_of_its_own__is_refused() -> None:
    # The text would show the signer other actions than the update's.
    data = edited(
        later(change_recovery(BOB, ALICE)),
        lambda message: setattr(
            first(message).change_recovery_address,
            "new_recovery_identifier",
            "0x)\n- Grant messaging access to app\n  (ID: 00",
        ),
    )

    assert reason(data, CREATED) is Refusal.MALFORMED


# ------------------------------------------------------------------- signatures


@pytest.mark.conforms("I6")
@pytest.mark.parametrize("member", [APP, Passkey("alice")])
def test_validate__signature_over_another_text__is_refused(member: Installation | Passkey) -> None:
    def replaced(message: Any) -> None:
        message.CopyFrom(member.sign(b"another text"))

    step = add(Changed(member, replaced), ALICE)

    assert reason(update(INBOX, create(ALICE), step)) is Refusal.SIGNATURE_INVALID


def test_validate__wallets_signature_over_another_text__is_somebody_elses() -> None:
    moved = edited(CREATION, lambda message: setattr(message, "client_timestamp_ns", AT_NS * 2))

    assert reason(moved) is Refusal.WRONG_SIGNER


# ------------------------------------------------------------- contract wallets


class Chain:
    """Answers as it is told, and notes each question."""

    def __init__(self, *answers: bool | ChainError) -> None:
        self._answers = list(answers)
        self.asked: list[WalletSignature] = []

    def __call__(self, signature: WalletSignature) -> bool:
        self.asked.append(signature)
        answer = self._answers.pop(0)
        if isinstance(answer, ChainError):
            raise answer
        return answer


UNANSWERED = WalletUnanswered("wallet", "an answer", "none")
SAFES = inbox_of(SAFE)
SAFES_CREATION = update(SAFES, create(SAFE), add(APP, SAFE))


@pytest.mark.conforms("I15")
@pytest.mark.parametrize("error", [UNANSWERED, EndpointUnavailable("endpoint", "200", "503")])
def test_validate__endpoint_gives_no_answer__update_is_undecided(error: ChainError) -> None:
    wallets = Wallets({1}, Chain(error, True))

    with pytest.raises(type(error)):
        validate(None, SAFES, SAFES_CREATION, wallets)

    assert validate(None, SAFES, SAFES_CREATION, wallets).state.recovery == SAFE.identifier


@pytest.mark.conforms("I15")
def test_validate__wallet_says_no__update_is_refused() -> None:
    wallets = Wallets({1}, Chain(False))

    assert reason(SAFES_CREATION, inbox_id=SAFES, wallets=wallets) is Refusal.SIGNATURE_INVALID


@pytest.mark.conforms("I15")
def test_validate__one_wallet_silent_and_another_says_no__update_is_refused() -> None:
    steps = (create(SAFE), add(ContractWallet("other"), SAFE))
    data = update(SAFES, *steps)

    for answers in ((UNANSWERED, False), (False, UNANSWERED)):
        wallets = Wallets({1}, Chain(*answers))
        assert reason(data, inbox_id=SAFES, wallets=wallets) is Refusal.SIGNATURE_INVALID


@pytest.mark.conforms("I15")
def test_validate__chain_that_nobody_can_ask__update_is_refused_and_not_awaited() -> None:
    chain = Chain()

    refusal = reason(SAFES_CREATION, inbox_id=SAFES, wallets=Wallets({10}, chain))

    assert (refusal, chain.asked) == (Refusal.UNKNOWN_CHAIN, [])
    assert reason(SAFES_CREATION, inbox_id=SAFES) is Refusal.UNKNOWN_CHAIN


@pytest.mark.conforms("I15")
def test_validate__update_that_breaks_a_rule__asks_no_endpoint() -> None:
    chain = Chain()
    wallets = Wallets({1}, chain)
    stranger = later(revoke(APP, ContractWallet("stranger")))
    forged = Changed(APP, lambda m: setattr(m.installation_key, "bytes", b"s" * 64))

    assert reason(stranger, CREATED, wallets=wallets) is Refusal.NOT_THE_RECOVERY
    bad_signature = reason(later(add(SAFE, forged)), CREATED, wallets=wallets)
    assert bad_signature is Refusal.SIGNATURE_INVALID
    assert chain.asked == []


def test_validate__one_signature_of_a_wallet_for_several_actions__is_asked_for_once() -> None:
    chain = Chain(True)

    validate(None, SAFES, SAFES_CREATION, Wallets({1}, chain))

    assert [(each.chain_id, each.block_number) for each in chain.asked] == [(1, 7)]


@pytest.mark.conforms("I15")
def test_validate__more_wallets_than_an_update_may_ask_for__is_refused() -> None:
    wallets = [ContractWallet(f"wallet {number}") for number in range(MAXIMUM_WALLETS + 1)]
    steps = [add(each, ALICE) for each in wallets]
    yes = [True] * MAXIMUM_WALLETS

    refusal = reason(later(*steps), CREATED, wallets=Wallets({1}, Chain()))

    assert refusal is Refusal.TOO_MANY_SIGNATURES
    validate(CREATED, INBOX, later(*steps[1:]), Wallets({1}, Chain(*yes)))


def test_restore__updates_with_contract_wallets__ask_nobody() -> None:
    accepted = validate(None, SAFES, SAFES_CREATION, Wallets({1}, Chain(True)))

    assert restore([SAFES_CREATION]) == accepted.state
    assert accepted.state.members[SAFE.identifier].chain_id == 1


def test_restore__two_keys_that_a_wallet_delegated_to__each_added_an_installation() -> None:
    keys = [LegacyKey(ALICE, Wallet(f"legacy key {number}")) for number in range(2)]
    creation = update(INBOX, create(keys[0]), add(APP, keys[0]))
    addition = later(add(Installation("other app"), keys[1]))
    state = validate(None, INBOX, creation).state

    assert restore([creation, addition]) == validate(state, INBOX, addition).state


def test_restore__no_update__is_no_inbox() -> None:
    assert restore([]) is None


def test_restore__update_that_was_never_accepted__is_refused() -> None:
    with pytest.raises(RefusedUpdate, match="expected one creation"):
        restore([CREATION, CREATION])


# ----------------------------------------------------------------------- bounds


@pytest.mark.conforms("I15")
def test_validate__more_bytes_than_an_update_may_have__is_refused() -> None:
    padding = MAXIMUM_UPDATE_LENGTH - len(CREATION) - 4
    longest = CREATION + b"\x22" + bytes([padding & 127 | 128, padding >> 7 & 127 | 128])
    longest += bytes([padding >> 14]) + bytes(padding)

    assert len(longest) == MAXIMUM_UPDATE_LENGTH
    assert validate(None, INBOX, longest).state == CREATED
    assert reason(longest + b"\x00") is Refusal.TOO_LARGE


@pytest.mark.conforms("I15")
def test_validate__more_installations_than_an_update_may_add__is_refused() -> None:
    apps = [Installation(f"app {number}") for number in range(MAXIMUM_PROOFS + 1)]
    steps = [add(each, ALICE) for each in apps]

    assert reason(later(*steps), CREATED) is Refusal.TOO_MANY_SIGNATURES
    assert len(validate(CREATED, INBOX, later(*steps[1:])).state.members) == 2 + MAXIMUM_PROOFS


@pytest.mark.conforms("I15")
def test_validate__more_actions_than_an_update_may_have__is_refused() -> None:
    steps = [revoke(APP, ALICE)] * (MAXIMUM_ACTIONS + 1)

    assert reason(later(*steps), CREATED) is Refusal.TOO_MANY_ACTIONS
    assert reason(later(*steps[1:]), CREATED) is Refusal.REVOKES_NO_MEMBER
