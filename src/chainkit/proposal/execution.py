"""A proposal is executed: everything is proved before it is sent, and read back afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.calls import Change, unmet
from chainkit.calls.effects import EFFECTS
from chainkit.chain import Endpoint
from chainkit.changes import explain_revert, sign_call, simulate_call
from chainkit.contract_state import ContractState
from chainkit.errors import ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.proposal.plain import PlainTransaction
from chainkit.proposal.proposal import Proposal
from chainkit.proposal.standing import Standing
from chainkit.safe import find_execution, pack
from chainkit.signatures import keccak256
from chainkit.signing import Signer
from chainkit.transactions import (
    RECEIPT_TIMEOUT_SECONDS,
    Receipt,
    SignedTransaction,
    estimate_gas,
    send_transaction,
    wait_for_receipt,
)


@dataclass(frozen=True, slots=True)
class Execution:
    """The transaction that makes a proposal's calls, proved to be possible but not sent."""

    proposal: Proposal
    change: Change
    to: bytes
    """20 bytes."""
    data: bytes
    gas: int
    """Estimated; for a plain account, what its owner signed for."""


def require_executable(standing: Standing) -> Change:
    """Return what a proposal changes. Raises ConfigurationError with all that is in its way."""
    if standing.obstacles or standing.change is None:
        got = "; ".join(standing.obstacles)
        raise ConfigurationError("proposal", "one that can be executed", got)
    return standing.change


def prepare(
    proposal: Proposal, standing: Standing, state: ContractState, executor: str
) -> Execution:
    """Build and simulate what ``executor`` sends; for a plain account that is its owner.

    Raises ConfigurationError where something is in the way, RefusedRequest in the contract's words
    where it reverts.
    """
    change = require_executable(standing)
    for call in proposal.calls:
        simulate_call(state, call, proposal.account)
    transaction = proposal.transaction
    if isinstance(transaction, PlainTransaction):
        return Execution(proposal, change, transaction.to, transaction.data, transaction.gas)
    chosen = {owner: proposal.signatures[owner] for owner in standing.signed}
    data = transaction.exec_calldata(pack(proposal.hash, list(chosen.values())))
    try:
        gas = estimate_gas(state.endpoint, transaction.safe, data, executor, state.block)
    except RefusedRequest as error:
        place = f"execTransaction at block {state.block}"
        raise RefusedRequest("simulation", "no revert", error.got, place) from error
    return Execution(proposal, change, transaction.safe, data, gas)


def sign_execution(
    execution: Execution, endpoint: Endpoint, payer: Signer | None
) -> SignedTransaction:
    """Sign the transaction that is sent; a plain account's was signed by its owner before.

    Raises ConfigurationError where nobody pays for a Safe's transaction.
    """
    transaction = execution.proposal.transaction
    if isinstance(transaction, PlainTransaction):
        (signature,) = execution.proposal.signatures.values()
        raw = transaction.raw(signature)
        return SignedTransaction(raw, keccak256(raw))
    if payer is None:
        raise ConfigurationError("payer", "an account that pays for the transaction", "none")
    to, data = execution.to, execution.data
    return sign_call(endpoint, payer, transaction.chain_id, to, data, execution.gas)


def execute(
    execution: Execution,
    endpoint: Endpoint,
    signed: SignedTransaction,
    timeout_seconds: float = RECEIPT_TIMEOUT_SECONDS,
) -> Receipt:
    """Send the transaction and prove that it did what the proposal says.

    A Safe's did if the Safe emitted ExecutionSuccess with the proposal's hash, a plain account's if
    its receipt has status 1; and the facts read back at the receipt's block are the ones that the
    proposal names. Raises TransactionFailed where any of this is missing.
    """
    send_transaction(endpoint, signed)
    receipt = wait_for_receipt(endpoint, signed.hash, timeout_seconds)
    place = f"transaction 0x{signed.hash.hex()} in block {receipt.block.reference}"
    state = ContractState(endpoint, receipt.block.reference)
    _check_success(execution, endpoint, receipt, place)
    if wrong := unmet(EFFECTS, state, execution.change):
        raise TransactionFailed("proposal", "its facts read back", "; ".join(wrong), place)
    return receipt


def _check_success(execution: Execution, endpoint: Endpoint, receipt: Receipt, place: str) -> None:
    proposal = execution.proposal
    transaction = proposal.transaction
    if not receipt.succeeded:
        got = explain_revert(endpoint, proposal.calls, proposal.account, receipt)
        raise TransactionFailed("proposal", "status 1", got, place)
    if isinstance(transaction, PlainTransaction):
        return
    found = find_execution(receipt.logs, transaction.safe, transaction.hash)
    if found != "success":
        expected = f"the Safe's ExecutionSuccess of 0x{transaction.hash.hex()}"
        raise TransactionFailed("proposal", expected, found or "no such event", place)
