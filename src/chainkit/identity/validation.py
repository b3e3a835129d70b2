"""Validates the identity updates of one inbox, in the order of their sequence ids (XIP-46)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from chainkit.errors import ChainError, InvalidSignature
from chainkit.identity.refusals import Refusal, refused
from chainkit.identity.rules import Inbox, apply
from chainkit.identity.signed import Ed25519Proof, PasskeyProof, check
from chainkit.identity.state import Accepted, AssociationState
from chainkit.identity.update import IdentityUpdate, read_update
from chainkit.identity.wallets import NO_WALLETS, Wallets, WalletSignature

MAXIMUM_PROOFS: Final = 32
"""Different signatures of installations and passkeys in one update: each takes milliseconds."""
MAXIMUM_WALLETS: Final = 8
"""Different signatures of contract wallets in one update: each is a question to an endpoint."""


def validate(
    state: AssociationState | None,
    inbox_id: bytes,
    data: bytes,
    wallets: Wallets = NO_WALLETS,
) -> Accepted:
    """Return the state after an update, and what it changes for the address log.

    ``state`` is that after all earlier updates of the inbox, None if there was none; ``inbox_id``
    the topic's identifier, 32 bytes; ``data`` a serialized IdentityUpdate, from an envelope whose
    bytes passed ``check_strict``. Raises RefusedUpdate, whose ``reason`` is a Refusal, and leaves
    the state as it was. Raises WalletUnanswered, or another ChainError, where an endpoint has to
    be asked again: the update is not decided.
    """
    update = read_update(data)
    if update.inbox_id != inbox_id:
        got = update.inbox_id.hex()
        raise refused(Refusal.WRONG_TOPIC, f"inbox {inbox_id.hex()}", got)
    accepted = apply(state, update)
    _check_signatures(update)
    _check_wallets(update, wallets)
    return accepted


def restore(verified_before: Iterable[bytes]) -> AssociationState | None:
    """Return the state after updates of one inbox that ``validate`` accepted, in their order.

    Nothing is verified again and no wallet is asked. Each update takes as long as itself, however
    many came before. Raises RefusedUpdate where they cannot have been accepted.
    """
    inbox = Inbox(None)
    for data in verified_before:
        inbox.apply(read_update(data))
    return inbox.state() if inbox.inbox_id is not None else None


def _check_signatures(update: IdentityUpdate) -> None:
    proofs = (Ed25519Proof, PasskeyProof)
    count = sum(isinstance(signed.proof, proofs) for signed in update.signatures)
    _check_count(count, MAXIMUM_PROOFS, "signatures of installations and passkeys")
    for signed in update.signatures:
        try:
            check(signed, update.text)
        except InvalidSignature as error:
            reason = Refusal.SIGNATURE_INVALID
            raise refused(reason, error.expected, error.got, error.subject) from error


def _check_wallets(update: IdentityUpdate, wallets: Wallets) -> None:
    asked = {s.proof for s in update.signatures if isinstance(s.proof, WalletSignature)}
    _check_count(len(asked), MAXIMUM_WALLETS, "signatures of contract wallets")
    for signature in sorted(asked):
        if signature.chain_id not in wallets.chain_ids:
            raise refused(Refusal.UNKNOWN_CHAIN, "a supported chain", signature.chain_id)
    unanswered: ChainError | None = None
    for signature in sorted(asked):
        try:
            is_valid = wallets.is_valid(signature)
        except ChainError as error:
            # Another wallet may refuse: then no answer of this one would make the update valid.
            unanswered = unanswered or error
        else:
            if not is_valid:
                wallet = f"wallet 0x{signature.address.hex()} of chain {signature.chain_id}"
                raise refused(Refusal.SIGNATURE_INVALID, "one that the wallet accepts", wallet)
    if unanswered is not None:
        raise unanswered


def _check_count(count: int, most: int, noun: str) -> None:
    if count > most:
        raise refused(Refusal.TOO_MANY_SIGNATURES, f"up to {most} {noun}", count)
