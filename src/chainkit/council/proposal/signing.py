"""An owner signs a proposal, and the file gets the signature after a check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe import as_eth_sign, recover_owner
from chainkit.council.signing import Signer, sign_transaction, sign_typed_data
from chainkit.council.signing.hashes import decode_transaction
from chainkit.errors import ConfigurationError, InvalidSignature, MalformedData
from chainkit.text.hexadecimal import hex0x


def sign_proposal(proposal: Proposal, council: Council, signer: Signer) -> Proposal:
    """Return the proposal with a signer's signature, which was recovered to be his.

    Raises ConfigurationError where he has signed already or may not sign, and InvalidSignature
    where he signed something else.
    """
    if signer.address in proposal.signatures:
        raise ConfigurationError("signer", "one who has not signed yet", signer.address)
    check_signer(signer.address, council)
    transaction = proposal.transaction
    if isinstance(transaction, AccountTransaction):
        _, signature = decode_transaction(sign_transaction(signer, transaction.fields))
    else:
        signature = sign_typed_data(signer, transaction.typed_data(), transaction.hash)
    return proposal.signed(signature)


def add_signature(proposal: Proposal, council: Council, signature: bytes) -> Proposal:
    """Return the proposal with a signature made elsewhere, 65 bytes or a contract's.

    Raises InvalidSignature where the signature has no signer, ConfigurationError where the proposal
    has it already, or its signer may not sign; the error reports if the same bytes are valid as
    ``eth_sign``.
    """
    signed = proposal.signed(signature)
    added = signed.signatures.keys() - proposal.signatures.keys()
    if not added:
        raise ConfigurationError("signature", "one that FILE does not hold yet", "the same again")
    for signer in added:
        try:
            check_signer(signer, council)
        except ConfigurationError as error:
            raise _without_four(proposal, council, signature, error) from error
    return signed


def _without_four(
    proposal: Proposal, council: Council, signature: bytes, error: ConfigurationError
) -> ConfigurationError:
    """Return the error, with advice where the signature's V lacks the 4 of eth_sign."""
    changed = as_eth_sign(signature)
    if council.safe is None or changed is None:
        return error
    try:
        owner = recover_owner(proposal.hash, changed)
    except InvalidSignature:
        return error
    if owner not in council.names:
        return error
    place = f"as eth_sign the same bytes are {owner}'s: --signature {hex0x(changed)}"
    return ConfigurationError(error.subject, error.expected, error.got, place)


def check_signer(signer: str, council: Council) -> None:
    """Raise ConfigurationError for a signer whom the reader's council file does not know.

    A stranger's signature, or one for another proposal, which recovers to an unknown address, would
    make the file impossible to execute.
    """
    if council.safe is None and signer != council.address:
        raise ConfigurationError("signer", f"the account {council.address}", signer)
    if council.safe and signer not in council.names:
        expected = "an owner whom your council file names"
        raise ConfigurationError("signer", expected, f"{signer}, who is not in it")


def typed_data(proposal: Proposal) -> Mapping[str, Any]:
    """Return the EIP-712 JSON for a signer elsewhere.

    Raises ConfigurationError for a plain account, whose transaction is no typed data.
    """
    if isinstance(proposal.transaction, AccountTransaction):
        raise ConfigurationError("proposal", "one of a Safe, which signs EIP-712", "a plain one")
    return proposal.transaction.typed_data()


def collect(proposal: Proposal, council: Council, copies: Mapping[str, Proposal]) -> Proposal:
    """Return the proposal with the signatures of its copies, which are given by name.

    Raises MalformedData that names a copy of another proposal, and ConfigurationError where a
    signer may not sign.
    """
    for name, other in copies.items():
        if other.hash != proposal.hash or other.grounds != proposal.grounds:
            expected = f"a copy of the proposal with the hash {hex0x(proposal.hash)}"
            raise MalformedData(name, expected, f"another, with {hex0x(other.hash)}")
        for signer, signature in other.signatures.items():
            check_signer(signer, council)
            proposal = proposal.signed(signature)
    return proposal
