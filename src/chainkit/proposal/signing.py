"""An owner signs a proposal, and its file grows by what was proved to be his signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chainkit.errors import ConfigurationError, MalformedData
from chainkit.proposal.council import Council
from chainkit.proposal.plain import PlainTransaction
from chainkit.proposal.proposal import Proposal
from chainkit.signing import Signer, sign_transaction, sign_typed_data
from chainkit.signing.hashes import decode_transaction


def sign_proposal(proposal: Proposal, council: Council, signer: Signer) -> Proposal:
    """Return the proposal with a signer's signature, which was recovered to be his.

    Raises ConfigurationError where he has signed already, or a plain account is another's, and
    InvalidSignature where he signed something else.
    """
    if signer.address in proposal.signatures:
        raise ConfigurationError("signer", "one who has not signed yet", signer.address)
    transaction = proposal.transaction
    if isinstance(transaction, PlainTransaction):
        if signer.address != council.address:
            raise ConfigurationError("signer", f"the account {council.address}", signer.address)
        _, signature = decode_transaction(sign_transaction(signer, transaction.fields))
    else:
        signature = sign_typed_data(signer, transaction.typed_data(), transaction.hash)
    return proposal.signed(signature)


def typed_data(proposal: Proposal) -> Mapping[str, Any]:
    """Return the EIP-712 JSON for a signer elsewhere.

    Raises ConfigurationError for a plain account, whose transaction is no typed data.
    """
    if isinstance(proposal.transaction, PlainTransaction):
        raise ConfigurationError("proposal", "one of a Safe, which signs EIP-712", "a plain one")
    return proposal.transaction.typed_data()


def collect(proposal: Proposal, others: Iterable[Proposal]) -> Proposal:
    """Return the proposal with the signatures of other copies of it.

    Raises MalformedData where one of them is another proposal.
    """
    for other in others:
        if other.hash != proposal.hash or other.grounds != proposal.grounds:
            raise MalformedData("copy", f"0x{proposal.hash.hex()}", f"0x{other.hash.hex()}")
        for signature in other.signatures.values():
            proposal = proposal.signed(signature)
    return proposal
