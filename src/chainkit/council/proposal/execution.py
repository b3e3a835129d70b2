"""Executes a proposal: everything is proved before the transaction is sent, and read back after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from chainkit.chain.sending import (
    Sending,
    SignedTransaction,
    TransactionRequest,
    check_cost,
    require_success,
)
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Change, Facts, unmet
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.changes import explain_revert, sign_request, simulate_call
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.nonce_use import find_nonce_use, is_nonce_used
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.proposal.status import ProposalStatus, expiry, running_code
from chainkit.council.safe import SafeTransaction, find_execution, pack
from chainkit.council.signing import Signer, transaction_cost
from chainkit.errors import ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.types import Receipt

_EXECUTABLE: Final = "one that can be executed"


@dataclass(frozen=True, slots=True)
class Execution:
    """The transaction that makes a proposal's calls, proved to be possible but not sent."""

    proposal: Proposal
    change: Change
    to: bytes
    """20 bytes."""
    data: bytes
    gas: int
    """Estimated; for a plain account, the gas for which its owner signed."""


def require_executable(status: ProposalStatus) -> Change:
    """Return a proposal's changes. Raises ConfigurationError with all obstacles."""
    if status.obstacles or status.change is None:
        got = "; ".join(status.obstacles)
        raise ConfigurationError("proposal", _EXECUTABLE, got)
    return status.change


def prepare(proposal: Proposal, status: ProposalStatus, executor: str) -> Execution:
    """Build and simulate the transaction of ``executor``; for a plain account that is its owner.

    Raises ConfigurationError for an obstacle, RefusedRequest with the contract's error where the
    transaction reverts.
    """
    change, state = require_executable(status), status.account.contracts
    for call in proposal.calls:
        simulate_call(state, call, proposal.account)
    transaction = proposal.transaction
    if isinstance(transaction, AccountTransaction):
        return Execution(proposal, change, transaction.to, transaction.data, transaction.gas)
    signatures = [proposal.signatures[owner] for owner in status.agreement.signed]
    packed = pack(proposal.hash, signatures, status.agreement.approved)
    data = transaction.exec_calldata(packed)
    try:
        gas = estimate_gas(state.endpoint, transaction.safe, data, executor, state.block)
    except RefusedRequest as error:
        place = f"execTransaction at block {state.block}"
        raise RefusedRequest("simulation", "no revert", error.got, place) from error
    return Execution(proposal, change, transaction.safe, data, gas)


def sign_execution(
    execution: Execution, sending: Sending, payer: Signer | None
) -> SignedTransaction:
    """Sign the transaction to be sent; the owner of a plain account has signed it before.

    Raises ConfigurationError where nobody pays for a Safe's transaction, or it could cost too much.
    """
    transaction = execution.proposal.transaction
    if isinstance(transaction, AccountTransaction):
        (signature,) = execution.proposal.signatures.values()
        raw = transaction.raw(signature)
        check_cost(transaction_cost(raw), sending.max_cost)
        return SignedTransaction(raw, keccak256(raw))
    if payer is None:
        raise ConfigurationError("payer", "an account that pays for the transaction", "none")
    to, data, gas = execution.to, execution.data, execution.gas
    return sign_request(sending, payer, TransactionRequest(transaction.chain_id, to, data, gas))


def execute(execution: Execution, sending: Sending, signed: SignedTransaction) -> Receipt:
    """Send the transaction and prove that it did what the proposal states.

    For a Safe, ExecutionSuccess with the proposal's hash must be among the events; for a plain
    account, the receipt must have status 1. At the receipt's block the proxies must run the code
    that the proposal names, and the contracts must answer with the facts that it names. Raises
    TransactionFailed where any of this is missing, and ConfigurationError where the proposal has
    expired, before it is sent.
    """
    if expired := expiry(execution.proposal, sending.endpoint.head()):
        raise ConfigurationError("proposal", _EXECUTABLE, expired[0])
    receipt = sending.send(signed)
    state = ContractState(sending.endpoint, receipt.block.reference)
    _check_success(execution, state, receipt)
    _check_code(execution.proposal, state, receipt.place)
    if wrong := unmet(EFFECTS, state, execution.change):
        raise TransactionFailed("proposal", "its facts read back", "; ".join(wrong), receipt.place)
    return receipt


def code_afterwards(proposal: Proposal) -> Facts:
    """Return the address of the code that each called proxy must run after the execution."""
    upgraded = {
        call.contract: call.arguments["newImplementation"]
        for call in proposal.calls
        if call.function == "upgradeToAndCall"
    }
    return {**proposal.grounds.runs, **upgraded}


def _check_code(proposal: Proposal, state: ContractState, place: str) -> None:
    """Other code could have done anything, and can give any answer."""
    found = running_code(proposal.calls, state)
    for contract, expected in code_afterwards(proposal).items():
        if (got := found.get(contract, "none")) != expected:
            raise TransactionFailed(f"code of {contract}", expected, got, place)


def _check_success(execution: Execution, state: ContractState, receipt: Receipt) -> None:
    transaction = execution.proposal.transaction
    explain = partial(_why_reverted, execution.proposal, state, receipt)
    require_success(receipt, "proposal", explain)
    if isinstance(transaction, AccountTransaction):
        return
    found = find_execution(receipt.logs, transaction.safe, transaction.hash)
    if found != "success":
        expected = f"the Safe's ExecutionSuccess of 0x{transaction.hash.hex()}"
        raise TransactionFailed("proposal", expected, found or "no such event", receipt.place)


def _why_reverted(proposal: Proposal, state: ContractState, receipt: Receipt) -> str:
    """Report that another transaction was first, or the contracts' error for the calls."""
    transaction = proposal.transaction
    if isinstance(transaction, SafeTransaction) and is_nonce_used(transaction, state):
        return f"nonce {transaction.nonce} used before: {find_nonce_use(proposal, state)}"
    return explain_revert(state.endpoint, proposal.calls, proposal.account, receipt)
