from copy import deepcopy

from hypothesis import example, given
from hypothesis import strategies as st

from chainkit.errors import RefusedUpdate
from chainkit.identity.actions import AddAssociation, ChangeRecovery, RevokeAssociation
from chainkit.identity.refusals import Refusal
from chainkit.identity.rules import apply
from chainkit.identity.state import AssociationState
from chainkit.identity.update import IdentityUpdate, read_update
from chainkit.identity.validation import restore
from chainkit.protocol.proto.identity_associations_pb2 import Signature
from chainkit.signatures import SECP256K1_ORDER
from support.identity import (
    AT_NS,
    Changed,
    Installation,
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

ALICE = Wallet("alice")
INBOX = inbox_of(ALICE)
OWNERS: list[Signer] = [ALICE, Wallet("bob"), Passkey("alice")]
APPS: list[Signer] = [Installation("app"), Installation("other app")]
SIGNERS = [*OWNERS, *APPS]
SECOND = 1_000_000_000

STEPS = st.one_of(
    st.builds(add, st.sampled_from(SIGNERS), st.sampled_from(SIGNERS)),
    st.builds(revoke, st.sampled_from(SIGNERS), st.sampled_from(OWNERS)),
    st.builds(change_recovery, st.sampled_from(OWNERS), st.sampled_from(OWNERS)),
    st.just(create(ALICE)),
)
"""Half of them break a rule in most states."""

HISTORIES = st.lists(st.lists(STEPS, min_size=1, max_size=3), max_size=8)


def lived(history: list[list[Step]]) -> list[tuple[IdentityUpdate, bytes, AssociationState]]:
    """The updates that were accepted, with the state after each, from a creation on."""
    found: list[tuple[IdentityUpdate, bytes, AssociationState]] = []
    for number, steps in enumerate([[create(ALICE)], *history]):
        data = update(INBOX, *steps, at_ns=AT_NS + number * SECOND)
        whole = read_update(data)
        before = found[-1][2] if found else None
        kept = deepcopy(before)
        try:
            found.append((whole, data, apply(before, whole).state))
        except RefusedUpdate as error:
            assert error.reason in tuple(Refusal)
        # An earlier state never changes, whatever came of the update.
        assert before == kept
    return found


@given(HISTORIES)
def test_apply__any_history__a_refused_update_leaves_no_trace(history: list[list[Step]]) -> None:
    accepted = lived(history)

    assert restore(data for _, data, _ in accepted) == accepted[-1][2]


@given(HISTORIES)
def test_apply__any_history__no_signature_is_ever_taken_again(history: list[list[Step]]) -> None:
    accepted = lived(history)
    final = accepted[-1][2]

    for whole, _, state in accepted:
        assert state.seen_signatures <= final.seen_signatures
        for signed in whole.signatures:
            assert signed.fingerprints <= state.seen_signatures
        try:
            apply(final, whole)
        except RefusedUpdate as error:
            assert error.reason in (Refusal.SIGNATURE_USED, Refusal.ALREADY_CREATED)
        else:
            raise AssertionError("an update was accepted twice")


@given(HISTORIES)
def test_apply__any_history__revoked_are_no_members(history: list[list[Step]]) -> None:
    for whole, _, state in lived(history):
        last: dict[object, object] = {}
        for each in whole.actions:
            if isinstance(each.action, AddAssociation | RevokeAssociation):
                last[each.action.member] = each.action
        for member, action in last.items():
            if isinstance(action, RevokeAssociation):
                assert member not in state.members


@given(HISTORIES)
@example(
    [
        [
            change_recovery(OWNERS[2], ALICE),
            add(APPS[0], OWNERS[2]),
            change_recovery(ALICE, OWNERS[2]),
        ]
    ]
)
def test_apply__any_history__installations_stand_on_members(history: list[list[Step]]) -> None:
    apps = {app.identifier for app in APPS}
    # A recovery need not be a member, and may have handed its right on since it added one.
    recoveries = {ALICE.identifier}
    for whole, _, state in lived(history):
        actions = [each.action for each in whole.actions]
        recoveries |= {each.recovery for each in actions if isinstance(each, ChangeRecovery)}
        for member in state.members.values():
            assert member.identifier != member.added_by
            if member.identifier in apps:
                assert member.added_by in state.members or member.added_by in recoveries


@given(st.sampled_from([0, 1, 27, 28]), st.booleans())
def test_apply__wallets_signature_in_any_spelling__counts_once(v: int, is_high: bool) -> None:
    def spelled(message: Signature) -> None:
        signature = message.erc_191.bytes
        s = int.from_bytes(signature[32:64], "big")
        written = (SECP256K1_ORDER - s if is_high else s).to_bytes(32, "big")
        message.erc_191.bytes = signature[:32] + written + bytes([v])

    bob = Wallet("bob")
    state = lived([[add(bob, ALICE)], [revoke(bob, ALICE)]])[-1][2]
    steps = add(Changed(bob, spelled), Changed(ALICE, spelled))
    data = update(INBOX, steps, at_ns=AT_NS + SECOND)

    try:
        apply(state, read_update(data))
    except RefusedUpdate as error:
        # Another V than the signer's names another signer.
        assert error.reason in (Refusal.SIGNATURE_USED, Refusal.WRONG_SIGNER)
    else:
        raise AssertionError("a signature was taken twice")
