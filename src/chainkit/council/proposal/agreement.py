"""The owners who agreed to a proposal: by a signature in its file, or by an approval on chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eth_abi.abi import encode

from chainkit.chain import Endpoint
from chainkit.chain.sending import Sending, SignedTransaction, TransactionRequest, require_success
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.interface import SELECTOR_LENGTH, shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.calls import SAFE
from chainkit.council.changes import sign_request
from chainkit.council.proposal.account_state import AccountState
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe import InnerCall, SafeTransaction, is_of_contract
from chainkit.council.signing import Signer
from chainkit.errors import AccessRefused, ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.types import Receipt

_CHECK: Final = keccak256(b"checkNSignatures(bytes32,bytes,bytes,uint256)")[:SELECTOR_LENGTH]
"""The Safe has another function of this name: a contract's interface knows one of each."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Owners by their kind of agreement, each once and in the order of the account's owners."""

    signed: tuple[str, ...] = ()
    """By a signature in the file that holds."""
    approved: tuple[str, ...] = ()
    """By an approval on the chain, where no signature in the file holds."""
    not_proved: tuple[str, ...] = ()
    """Contracts that did not agree: the Safe refuses their signature in the file."""

    @property
    def count(self) -> int:
        """How many agreed."""
        return len(self.signed) + len(self.approved)

    def word(self, owner: str) -> str:
        """Return an owner's kind of agreement in a word or two, a dash where there is none."""
        words = {"signed": self.signed, "approved": self.approved, "not proved": self.not_proved}
        return next((word for word, owners in words.items() if owner in owners), "-")


def read_agreement(proposal: Proposal, account: AccountState) -> Agreement:
    """Read the owners' agreement at the account's block; the Safe checks contracts, approvals."""
    signatures, state, transaction = proposal.signatures, account.contracts, proposal.transaction
    given = [owner for owner in account.owners if owner in signatures]
    if isinstance(transaction, AccountTransaction):
        return Agreement(tuple(given))
    signed = tuple(
        owner
        for owner in given
        if not is_of_contract(signatures[owner]) or _takes(state, transaction, signatures[owner])
    )
    approved = tuple(
        owner
        for owner in account.owners
        if owner not in signed and is_approved(state, transaction, owner)
    )
    refused = (owner for owner in given if owner not in (*signed, *approved))
    return Agreement(signed, approved, tuple(refused))


def is_approved(state: ContractState, transaction: SafeTransaction, owner: str) -> bool:
    """Return whether an owner approved a transaction's hash on the chain."""
    answer = state.ask(SAFE, transaction.safe, "approvedHashes", owner, transaction.hash)
    return bool(answer)


def approval_call(transaction: SafeTransaction) -> InnerCall:
    """Return the call of the Safe by which an owner approves a transaction."""
    return InnerCall(
        transaction.safe, shipped_interface(SAFE).encode("approveHash", transaction.hash)
    )


def sign_approval(
    transaction: SafeTransaction, account: AccountState, sending: Sending, signer: Signer
) -> SignedTransaction:
    """Sign the approval by an owner with a key.

    Raises ConfigurationError for a signer who is no owner, or has approved already, else as
    ``sign_request``.
    """
    state, owner = account.contracts, signer.address
    if owner not in account.owners:
        expected = f"an owner of the Safe, one of {', '.join(account.owners)}"
        raise ConfigurationError(signer.label, expected, owner)
    if is_approved(state, transaction, owner):
        raise ConfigurationError(signer.label, "an owner who has not approved yet", owner)
    call = approval_call(transaction)
    gas = estimate_gas(state.endpoint, call.target, call.calldata, owner, state.block)
    request = TransactionRequest(transaction.chain_id, call.target, call.calldata, gas)
    return sign_request(sending, signer, request)


def send_approval(
    transaction: SafeTransaction, owner: str, sending: Sending, signed: SignedTransaction
) -> Receipt:
    """Send an owner's approval, and read it back. Raises TransactionFailed if it is missing."""
    receipt = sending.send(signed)
    require_success(receipt, "approval", lambda: "a revert")
    if not _is_approved_at(sending.endpoint, receipt, transaction, owner):
        expected = f"that {owner} approved 0x{transaction.hash.hex()}"
        raise TransactionFailed("approval", expected, "no approval", receipt.place)
    return receipt


def _is_approved_at(
    endpoint: Endpoint, receipt: Receipt, transaction: SafeTransaction, owner: str
) -> bool:
    return is_approved(ContractState(endpoint, receipt.block.reference), transaction, owner)


def _takes(state: ContractState, transaction: SafeTransaction, signature: bytes) -> bool:
    """Let the Safe check one owner's signature as it does at an execution."""
    types = ["bytes32", "bytes", "bytes", "uint256"]
    arguments = (transaction.hash, transaction.encoded, signature, 1)
    try:
        state.endpoint.call(transaction.safe, _CHECK + encode(types, arguments), state.block)
    except AccessRefused:
        raise
    except RefusedRequest:
        return False
    return True
