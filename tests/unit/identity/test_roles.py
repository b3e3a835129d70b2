import pytest

from chainkit.identity.refusals import Refusal
from chainkit.identity.rules import apply
from chainkit.identity.state import Changes
from chainkit.identity.update import read_update
from support.identity import (
    AT_NS,
    ContractWallet,
    Installation,
    LegacyKey,
    Passkey,
    Signer,
    Step,
    Wallet,
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
    FULL,
    INBOX,
    LEGACY,
    OTHER_APP,
    PASSKEY,
    SAFE,
    WITH_APP,
    after,
    identifiers,
    members,
    outcome,
)

# ----------------------------------------------------------------- legacy keys


@pytest.mark.conforms("I8")
def test_add__legacy_key_of_the_inbox__adds_its_installation() -> None:
    state = after((create(LEGACY), add(APP, LEGACY)))

    assert members(state) == identifiers(ALICE, APP)


@pytest.mark.conforms("I8")
def test_add__legacy_key_in_another_inbox_than_its_own__is_refused() -> None:
    with_nonce = after((create(ALICE, 1),), inbox_id=inbox_of(ALICE, 1))
    refusal = outcome(with_nonce, add(APP, LEGACY), inbox_id=inbox_of(ALICE, 1))
    assert refusal is Refusal.LEGACY_KEY

    bobs = LegacyKey(BOB, Wallet("legacy of bob"))
    assert outcome(FULL, add(Installation("third app"), bobs)) is Refusal.LEGACY_KEY


@pytest.mark.conforms("I8")
@pytest.mark.parametrize("existing", [ALICE, APP])
def test_add__new_wallet_by_its_legacy_key__is_refused(existing: Signer) -> None:
    bobs = LegacyKey(BOB, Wallet("legacy of bob"))

    assert outcome(WITH_APP, add(bobs, existing)) is Refusal.LEGACY_KEY


@pytest.mark.conforms("I8")
def test_add__creator_again_by_its_legacy_key__needs_an_installation() -> None:
    # Today's clients hold a wallet that adds it to the same inbox id, which it cannot have.
    state = after((create(ALICE), add(BOB, ALICE), add(APP, BOB), revoke(ALICE, ALICE)))

    assert outcome(state, add(LEGACY, BOB)) is Refusal.LEGACY_KEY
    assert outcome(state, add(LEGACY, APP)) is None


@pytest.mark.conforms("I8")
def test_add__legacy_key_twice__is_refused() -> None:
    twice = outcome(None, create(LEGACY), add(APP, LEGACY), add(OTHER_APP, LEGACY))
    assert twice is Refusal.LEGACY_KEY

    state = after((create(LEGACY), add(APP, LEGACY)))
    assert outcome(state, add(OTHER_APP, LEGACY)) is Refusal.SIGNATURE_USED


@pytest.mark.conforms("I8")
def test_add__wallet_by_a_legacy_key__is_refused() -> None:
    assert outcome(None, create(LEGACY), add(BOB, LEGACY)) is Refusal.LEGACY_KEY


# ----------------------------------------------------------------- revocations


@pytest.mark.conforms("I9")
def test_revoke__wallet__its_installations_fall_and_its_wallets_stay() -> None:
    state = after(
        (create(ALICE), add(BOB, ALICE)),
        (add(APP, BOB), add(OTHER_APP, ALICE), add(CAROL, BOB), add(PASSKEY, BOB)),
        (revoke(BOB, ALICE),),
    )

    assert members(state) == identifiers(ALICE, OTHER_APP, CAROL, PASSKEY)


@pytest.mark.conforms("I9")
def test_revoke__installation__what_it_added_stays() -> None:
    state = after((create(ALICE), add(APP, ALICE)), (add(BOB, APP),), (revoke(APP, ALICE),))

    assert members(state) == identifiers(ALICE, BOB)


@pytest.mark.conforms("I9")
@pytest.mark.parametrize("signer", [BOB, APP, PASSKEY, CAROL])
def test_revoke__by_another_than_the_recovery_identifier__is_refused(signer: Signer) -> None:
    assert outcome(FULL, revoke(OTHER_APP, signer)) is Refusal.NOT_THE_RECOVERY


@pytest.mark.conforms("I9")
def test_revoke__by_the_former_recovery_identifier__is_refused() -> None:
    state = after((create(ALICE), add(APP, ALICE), change_recovery(CAROL, ALICE)))

    assert outcome(state, revoke(APP, ALICE)) is Refusal.NOT_THE_RECOVERY
    assert outcome(state, revoke(APP, CAROL)) is None


@pytest.mark.conforms("I9")
def test_revoke__by_a_legacy_key__is_refused() -> None:
    assert outcome(FULL, revoke(APP, LEGACY)) is Refusal.LEGACY_KEY


@pytest.mark.conforms("I9")
@pytest.mark.parametrize("absent", [CAROL, Installation("third app"), Passkey("third")])
def test_revoke__no_member__is_refused(absent: Signer) -> None:
    assert outcome(FULL, revoke(absent, ALICE)) is Refusal.REVOKES_NO_MEMBER


@pytest.mark.conforms("I9")
def test_revoke__twice_in_one_update__is_refused() -> None:
    refusal = outcome(FULL, revoke(APP, ALICE), revoke(APP, ALICE))

    assert refusal is Refusal.REVOKES_NO_MEMBER


# -------------------------------------------------------- recovery identifier


@pytest.mark.conforms("I10")
@pytest.mark.parametrize("recovery", [CAROL, Passkey("third")])
def test_change_recovery__by_the_current_one__needs_no_signature_of_the_new(
    recovery: Signer,
) -> None:
    state = after((create(ALICE),), (change_recovery(recovery, ALICE),))

    assert state.recovery == recovery.identifier
    assert members(state) == identifiers(ALICE)
    assert outcome(state, change_recovery(ALICE, recovery)) is None


@pytest.mark.conforms("I10")
@pytest.mark.parametrize("signer", [BOB, APP, CAROL])
def test_change_recovery__by_somebody_else__is_refused(signer: Signer) -> None:
    assert outcome(FULL, change_recovery(signer if signer is not APP else BOB, signer)) is (
        Refusal.NOT_THE_RECOVERY
    )


@pytest.mark.conforms("I10")
def test_change_recovery__by_a_legacy_key__is_refused() -> None:
    assert outcome(FULL, change_recovery(BOB, LEGACY)) is Refusal.LEGACY_KEY


# ------------------------------------------------------------ contract wallets

ON_CHAIN_2 = ContractWallet("safe", chain_id=2)
SAFES_INBOX = inbox_of(SAFE)
OF_SAFE = after((create(SAFE), add(APP, SAFE)), inbox_id=SAFES_INBOX)


@pytest.mark.conforms("I11")
@pytest.mark.parametrize("step", [add(BOB, ON_CHAIN_2), revoke(APP, ON_CHAIN_2)])
def test_apply__contract_wallet_of_another_chain__is_refused(step: Step) -> None:
    assert outcome(OF_SAFE, step, inbox_id=SAFES_INBOX) is Refusal.WRONG_CHAIN


@pytest.mark.conforms("I11")
def test_apply__contract_wallet_of_the_same_chain__is_accepted() -> None:
    assert outcome(OF_SAFE, add(BOB, SAFE), inbox_id=SAFES_INBOX) is None
    assert outcome(OF_SAFE, change_recovery(BOB, SAFE), inbox_id=SAFES_INBOX) is None
    other = outcome(OF_SAFE, change_recovery(BOB, ON_CHAIN_2), inbox_id=SAFES_INBOX)
    assert other is Refusal.WRONG_CHAIN


@pytest.mark.conforms("I11")
def test_apply__wallet_with_a_key_that_signs_as_a_contract__is_refused() -> None:
    class AsContract(ContractWallet):
        identifier = ALICE.identifier

    assert outcome(FULL, add(CAROL, AsContract("alice"))) is Refusal.WRONG_CHAIN


@pytest.mark.conforms("I11")
def test_add__member_again_from_another_chain__is_refused() -> None:
    # An installation would move the wallet to a chain where somebody else holds its address.
    assert outcome(OF_SAFE, add(ON_CHAIN_2, APP), inbox_id=SAFES_INBOX) is Refusal.WRONG_CHAIN


# ------------------------------------------------------------------- one role


@pytest.mark.conforms("I13")
def test_add__passkey_in_the_other_form_of_its_key__is_refused() -> None:
    long = Passkey("alice", is_compressed=False)

    assert outcome(FULL, add(long, ALICE)) is Refusal.SECOND_ROLE
    assert outcome(FULL, change_recovery(long, ALICE)) is Refusal.SECOND_ROLE


@pytest.mark.conforms("I13")
def test_add__legacy_key_as_a_wallet__is_refused() -> None:
    state = after((create(LEGACY), add(APP, LEGACY)))

    assert outcome(state, add(LEGACY.key, ALICE)) is Refusal.SECOND_ROLE
    assert outcome(state, change_recovery(LEGACY.key, ALICE)) is Refusal.SECOND_ROLE


@pytest.mark.conforms("I13")
def test_add__wallet_as_a_legacy_key__is_refused() -> None:
    state = after((create(ALICE), add(BOB, ALICE)))
    delegated_to_bob = LegacyKey(ALICE, BOB)

    assert outcome(state, add(APP, delegated_to_bob)) is Refusal.SECOND_ROLE
    assert outcome(None, create(LegacyKey(ALICE, ALICE))) is Refusal.SECOND_ROLE


@pytest.mark.conforms("I13")
def test_add__revoked_key_in_another_role__is_refused() -> None:
    state = after((create(ALICE), add(PASSKEY, ALICE)), (revoke(PASSKEY, ALICE),))

    assert outcome(state, add(Passkey("alice", False), ALICE)) is Refusal.SECOND_ROLE
    assert outcome(state, add(PASSKEY, ALICE)) is None


# --------------------------------------------------------------------- changes


@pytest.mark.conforms("I14")
def test_apply__wallets_added_and_revoked__are_the_changes() -> None:
    steps = (add(CAROL, ALICE), add(Installation("third"), ALICE), revoke(BOB, ALICE))
    data = read_update(update(INBOX, *steps, at_ns=AT_NS * 2))

    changes = apply(FULL, data).changes

    # The app that Bob added goes with Bob.
    installed, uninstalled = (Installation("third").identifier,), (OTHER_APP.identifier,)
    assert changes == Changes((CAROL.identifier,), (BOB.identifier,), installed, uninstalled)


@pytest.mark.conforms("I14")
def test_apply__added_and_revoked_at_once__is_no_change() -> None:
    steps = (add(CAROL, ALICE), revoke(CAROL, ALICE), revoke(BOB, ALICE), add(BOB, ALICE))
    data = read_update(update(INBOX, *steps, at_ns=AT_NS * 2))

    assert apply(FULL, data).changes == Changes(uninstalled=(OTHER_APP.identifier,))


def test_signatures__one_given_for_several_actions__is_there_once() -> None:
    data = read_update(update(INBOX, create(ALICE), add(BOB, ALICE)))

    signers = [each.signer for each in data.signatures]
    assert signers == [ALICE.identifier, BOB.identifier]
