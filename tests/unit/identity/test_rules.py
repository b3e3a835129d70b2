from collections.abc import Callable

import pytest

from chainkit.errors import RefusedUpdate
from chainkit.identity.refusals import Refusal
from chainkit.identity.rules import apply
from chainkit.identity.signed import SignatureKind
from chainkit.identity.update import read_update
from chainkit.protocol.proto.identity_associations_pb2 import Signature
from chainkit.signatures import SECP256K1_ORDER
from support.identity import (
    AT_NS,
    Changed,
    ContractWallet,
    Installation,
    Passkey,
    Signer,
    Step,
    add,
    change_recovery,
    create,
    inbox_of,
    revoke,
    update,
)
from support.inboxes import (
    ALICE,
    APP,
    BOB,
    CAROL,
    CREATED,
    FULL,
    INBOX,
    LEGACY,
    OTHER_APP,
    PASSKEY,
    SAFE,
    SECOND,
    WITH_APP,
    after,
    identifiers,
    members,
    outcome,
)

# ------------------------------------------------------------ several actions


@pytest.mark.conforms("I2")
def test_apply__several_actions__each_stands_on_the_one_before() -> None:
    state = after((create(ALICE), add(BOB, ALICE), add(APP, BOB), revoke(BOB, ALICE)))

    assert members(state) == identifiers(ALICE)


@pytest.mark.conforms("I2")
def test_apply__last_action_breaks_a_rule__none_applies() -> None:
    before = (dict(WITH_APP.members), WITH_APP.seen_signatures, dict(WITH_APP.roles))

    refusal = outcome(WITH_APP, add(BOB, APP), revoke(APP, ALICE), revoke(CAROL, ALICE))

    assert refusal is Refusal.REVOKES_NO_MEMBER
    assert (dict(WITH_APP.members), WITH_APP.seen_signatures, dict(WITH_APP.roles)) == before


@pytest.mark.conforms("I2")
def test_apply__update_after_another__sees_its_members() -> None:
    assert outcome(CREATED, add(OTHER_APP, BOB)) is Refusal.NOT_A_MEMBER
    assert outcome(FULL, add(Installation("third app"), BOB)) is None


def test_apply__refused_action__is_named_by_its_place() -> None:
    data = update(INBOX, create(ALICE), revoke(BOB, ALICE))

    with pytest.raises(RefusedUpdate, match=r"expected a member, got 0x\w{40} \(action 2\)"):
        apply(None, read_update(data))


def test_apply__state_of_another_inbox__is_refused() -> None:
    assert outcome(CREATED, add(BOB, ALICE), inbox_id=inbox_of(BOB)) is Refusal.WRONG_INBOX


# ------------------------------------------------------------------- creation


@pytest.mark.conforms("I3")
@pytest.mark.parametrize("owner", [ALICE, PASSKEY, SAFE])
def test_create__signed_by_its_owner__owner_is_member_and_recovery(owner: Signer) -> None:
    state = after((create(owner, 9),), inbox_id=inbox_of(owner, 9))

    assert members(state) == identifiers(owner)
    assert state.recovery == owner.identifier
    assert state.members[owner.identifier].added_by is None


@pytest.mark.conforms("I3")
def test_create__second_time__is_refused() -> None:
    assert outcome(CREATED, create(ALICE)) is Refusal.ALREADY_CREATED
    assert outcome(None, create(ALICE), create(ALICE)) is Refusal.ALREADY_CREATED


@pytest.mark.conforms("I3")
def test_create__with_another_nonce_than_the_inbox_id__is_refused() -> None:
    assert outcome(None, create(ALICE, 1)) is Refusal.WRONG_INBOX
    assert outcome(None, create(BOB)) is Refusal.WRONG_INBOX


@pytest.mark.conforms("I3")
def test_create__signed_by_somebody_else__is_refused() -> None:
    assert outcome(None, create(ALICE, by=BOB)) is Refusal.WRONG_SIGNER


@pytest.mark.conforms("I3", "I8")
def test_create__by_a_legacy_key__needs_nonce_0() -> None:
    assert outcome(None, create(LEGACY)) is None
    refusal = outcome(None, create(LEGACY, 1), inbox_id=inbox_of(ALICE, 1))
    assert refusal is Refusal.LEGACY_KEY


@pytest.mark.conforms("I4")
@pytest.mark.parametrize(
    "step", [add(BOB, ALICE), revoke(ALICE, ALICE), change_recovery(BOB, ALICE)]
)
def test_apply__another_action_before_the_creation__is_refused(step: Step) -> None:
    assert outcome(None, step) is Refusal.NOT_CREATED
    assert outcome(None, step, create(ALICE)) is Refusal.NOT_CREATED


# ------------------------------------------------------------------ signatures


def high_s(message: Signature) -> None:
    signature = message.erc_191.bytes
    high = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    message.erc_191.bytes = signature[:32] + high.to_bytes(32, "big") + signature[64:]


def parity(message: Signature) -> None:
    signature = message.erc_191.bytes
    message.erc_191.bytes = signature[:64] + bytes([signature[64] - 27])


@pytest.mark.conforms("I5", "I12")
@pytest.mark.parametrize("change", [lambda message: None, high_s, parity])
def test_apply__addition_again_after_its_revocation__is_refused(
    change: Callable[[Signature], object],
) -> None:
    # Both signatures are wallets', which anybody can rewrite without their keys.
    state = after((create(ALICE),), (add(BOB, ALICE),), (revoke(BOB, ALICE),))

    again = add(Changed(BOB, change), Changed(ALICE, change))

    assert outcome(state, again, at_ns=AT_NS + SECOND) is Refusal.SIGNATURE_USED


@pytest.mark.conforms("I5", "I12")
@pytest.mark.parametrize("member", [BOB, PASSKEY, SAFE])
def test_apply__same_member_signs_the_same_text_again__is_refused(member: Signer) -> None:
    # A passkey signs otherwise each time, and a contract takes its signature in several wrappers.
    other = Passkey("other")
    state = after(
        (create(ALICE), add(other, ALICE)), (add(member, other),), (revoke(member, ALICE),)
    )
    rewritten = ContractWallet("safe", suffix=b"wrapped") if member is SAFE else member

    refusal = outcome(state, add(rewritten, other), at_ns=AT_NS + SECOND)

    assert refusal is Refusal.SIGNATURE_USED


@pytest.mark.conforms("I5")
def test_apply__revocation_or_change_of_recovery_again__is_refused() -> None:
    state = after(
        (create(ALICE),),
        (add(BOB, ALICE),),
        (revoke(BOB, ALICE),),
        (change_recovery(ALICE, ALICE),),
        (add(BOB, ALICE),),
    )

    assert outcome(state, revoke(BOB, ALICE), at_ns=AT_NS + 2 * SECOND) is Refusal.SIGNATURE_USED
    again = outcome(state, change_recovery(ALICE, ALICE), at_ns=AT_NS + 3 * SECOND)
    assert again is Refusal.SIGNATURE_USED


@pytest.mark.conforms("I5")
def test_apply__same_text_signed_by_somebody_else__is_another_signature() -> None:
    state = after(
        (create(ALICE), add(APP, ALICE), add(OTHER_APP, ALICE)),
        (revoke(APP, ALICE),),
        (add(APP, ALICE),),
        (change_recovery(BOB, ALICE),),
    )

    assert outcome(state, revoke(APP, ALICE), at_ns=AT_NS + SECOND) is Refusal.SIGNATURE_USED
    assert outcome(state, revoke(APP, BOB), at_ns=AT_NS + SECOND) is None


@pytest.mark.conforms("I12")
def test_apply__one_signature_for_several_actions__is_used_only_afterwards() -> None:
    state = after((create(ALICE), add(APP, ALICE), add(BOB, ALICE)))

    assert members(state) == identifiers(ALICE, APP, BOB)


@pytest.mark.conforms("I12")
def test_apply__accepted_update__all_its_signatures_become_used() -> None:
    data = read_update(update(INBOX, create(ALICE), add(APP, ALICE), add(BOB, APP)))

    state = apply(None, data).state

    for signed in data.signatures:
        assert signed.fingerprints <= state.seen_signatures
    assert len(data.signatures) == 3


# ------------------------------------------------------------------- additions


@pytest.mark.conforms("I6")
def test_add__signed_by_both__is_a_member_with_its_parent() -> None:
    member = FULL.members[BOB.identifier]

    assert member.added_by == APP.identifier
    assert member.client_timestamp_ns == AT_NS + SECOND


@pytest.mark.conforms("I6")
def test_add__new_member_did_not_sign__is_refused() -> None:
    assert outcome(WITH_APP, add(BOB, ALICE, signed_by=CAROL)) is Refusal.WRONG_SIGNER
    assert outcome(WITH_APP, add(OTHER_APP, ALICE, signed_by=APP)) is Refusal.WRONG_SIGNER


@pytest.mark.conforms("I6")
def test_add__existing_one_is_no_member__is_refused() -> None:
    assert outcome(WITH_APP, add(BOB, CAROL)) is Refusal.NOT_A_MEMBER
    assert outcome(WITH_APP, add(BOB, OTHER_APP)) is Refusal.NOT_A_MEMBER


@pytest.mark.conforms("I6")
def test_add__by_the_recovery_identifier_that_is_no_member__is_accepted() -> None:
    state = after((create(ALICE), change_recovery(CAROL, ALICE)))

    assert CAROL.identifier not in state.members
    assert outcome(state, add(BOB, CAROL)) is None


@pytest.mark.conforms("I6")
def test_add__by_a_former_member__is_refused() -> None:
    state = after((create(ALICE), add(BOB, ALICE)), (revoke(BOB, ALICE),))

    assert outcome(state, add(CAROL, BOB)) is Refusal.NOT_A_MEMBER


@pytest.mark.conforms("I6")
def test_add__legacy_signature_of_a_recovery_identifier_only__is_refused() -> None:
    state = after((create(ALICE), add(BOB, ALICE)), (revoke(ALICE, ALICE),))

    assert outcome(state, add(APP, LEGACY)) is Refusal.LEGACY_KEY
    assert outcome(state, add(APP, ALICE)) is None


@pytest.mark.conforms("I6")
def test_add__member_adds_itself__is_refused() -> None:
    assert outcome(WITH_APP, add(ALICE, ALICE)) is Refusal.ADDS_ITSELF
    assert outcome(WITH_APP, add(APP, APP)) is Refusal.ADDS_ITSELF


@pytest.mark.conforms("I7")
@pytest.mark.parametrize("existing", [ALICE, APP, PASSKEY])
@pytest.mark.parametrize("new", [CAROL, Installation("third"), Passkey("third")])
def test_add__each_kind_by_each_kind__only_installations_add_no_installation(
    existing: Signer, new: Signer
) -> None:
    is_refused = isinstance(existing, Installation) and isinstance(new, Installation)

    refusal = outcome(FULL, add(new, existing))

    assert refusal is (Refusal.MAY_NOT_ADD if is_refused else None)


@pytest.mark.conforms("I7")
@pytest.mark.parametrize("wrong", ["creates", "adds", "is added", "revokes"])
def test_apply__kind_of_signature_that_the_member_cannot_make__is_refused(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {
        "creates": (None, create(ALICE)),
        "adds": (CREATED, add(APP, ALICE)),
        "is added": (CREATED, add(BOB, ALICE)),
        "revokes": (FULL, revoke(APP, ALICE)),
    }
    state, step = steps[wrong]
    data = read_update(update(INBOX, step, at_ns=AT_NS * 2))
    # No bytes read as such a signature: its kind says which member signed.
    chosen = BOB.identifier if wrong == "is added" else ALICE.identifier
    for each in data.signatures:
        if each.signer == chosen:
            object.__setattr__(each, "kind", SignatureKind.INSTALLATION)

    with pytest.raises(RefusedUpdate) as caught:
        apply(state, data)

    assert caught.value.reason == Refusal.WRONG_SIGNATURE_KIND


def test_add__a_member_again__has_the_new_parent() -> None:
    steps = (create(ALICE), add(BOB, ALICE), add(APP, ALICE), add(APP, BOB))

    assert members(after(steps, (revoke(BOB, ALICE),))) == identifiers(ALICE)
    assert members(after((*steps, revoke(ALICE, ALICE)))) == identifiers(BOB, APP)


def test_add__a_revoked_installation_by_another_wallet__has_the_new_parent() -> None:
    state = after(
        (
            create(ALICE),
            add(BOB, ALICE),
            add(APP, ALICE),
            revoke(APP, ALICE),
            add(APP, BOB),
            revoke(ALICE, ALICE),
        )
    )

    assert members(state) == identifiers(BOB, APP)
