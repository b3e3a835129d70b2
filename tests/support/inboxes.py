"""Inboxes that updates made, and why another update is refused."""

from chainkit.errors import RefusedUpdate
from chainkit.identity.identifiers import MemberIdentifier
from chainkit.identity.refusals import Refusal
from chainkit.identity.rules import apply
from chainkit.identity.state import AssociationState
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
    create,
    inbox_of,
    update,
)

ALICE, BOB, CAROL = Wallet("alice"), Wallet("bob"), Wallet("carol")
APP, OTHER_APP = Installation("app"), Installation("other app")
PASSKEY = Passkey("alice")
SAFE = ContractWallet("safe")
LEGACY = LegacyKey(ALICE, Wallet("legacy"))
INBOX = inbox_of(ALICE)

SECOND = 1_000_000_000


def after(*updates: tuple[Step, ...], inbox_id: bytes = INBOX) -> AssociationState:
    """The state after updates, one each second."""
    state = None
    for number, steps in enumerate(updates):
        data = update(inbox_id, *steps, at_ns=AT_NS + number * SECOND)
        state = apply(state, read_update(data)).state
    assert state is not None
    return state


def outcome(
    state: AssociationState | None, *steps: Step, inbox_id: bytes = INBOX, at_ns: int = AT_NS * 2
) -> Refusal | None:
    """Why an update is refused, or None."""
    try:
        apply(state, read_update(update(inbox_id, *steps, at_ns=at_ns)))
    except RefusedUpdate as error:
        return Refusal(error.reason)
    return None


def members(state: AssociationState) -> set[MemberIdentifier]:
    return set(state.members)


def identifiers(*signers: Signer) -> set[MemberIdentifier]:
    return {signer.identifier for signer in signers}


CREATED = after((create(ALICE),))
WITH_APP = after((create(ALICE), add(APP, ALICE)))
FULL = after(
    (create(ALICE), add(APP, ALICE)),
    (add(BOB, APP),),
    (add(OTHER_APP, BOB), add(PASSKEY, BOB)),
)
