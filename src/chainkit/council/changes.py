"""Calls of our contracts, planned and simulated; a single call is also signed, sent and proved.

A plan is read at one block. The changed facts are read again right before signing, because a person
takes time to read, and once more at the block in which the call was mined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from chainkit.chain import Endpoint
from chainkit.chain.sending import (
    Sending,
    SignedTransaction,
    TransactionRequest,
    draft_transaction,
    require_success,
)
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call, Change, Effect, read_change, unmet
from chainkit.council.calls.cautions import call_cautions, last_nodes_cautions
from chainkit.council.calls.shared_urls import shared_url_cautions
from chainkit.council.signing import Signer, sign_transaction
from chainkit.errors import AccessRefused, ConfigurationError, RefusedRequest, TransactionFailed
from chainkit.signatures import keccak256
from chainkit.types import BlockReference, Receipt

Effects = Mapping[str, Effect]
"""How functions change their contracts, by the function's name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Calls that change something, simulated but not sent."""

    block: BlockReference
    """The block that the plan was read at and simulated on."""
    sender: str
    """Checksummed address: the sender in the simulation."""
    senders: tuple[str, ...]
    """Checksummed addresses: any one of these accounts may make all the calls."""
    accounts: tuple[str, ...]
    """The accounts of ``senders`` that are no contracts: a key signs for them."""
    change: Change
    gas: tuple[int, ...]
    """Estimated gas units, by call."""
    cautions: tuple[str, ...] = ()
    """Warnings for the reader, a line each, safe to print."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The transaction that would be sent."""
        return self.change.calls


def plan_change(
    effects: Effects,
    state: ContractState,
    record: DeploymentRecord,
    calls: Sequence[Call],
    sender: str | None = None,
) -> Plan:
    """Plan calls and simulate each as ``sender``; without one as an account that may make them.

    Raises ConfigurationError where no account may make all calls, ``sender`` may not, or a call
    changes nothing, and RefusedRequest in the contract's words where a simulation reverts.
    """
    senders = _senders(effects, state, calls)
    accounts = tuple(
        address for address in senders if not state.is_contract(bytes.fromhex(address[2:]))
    )
    sender = sender or next(iter(accounts or senders))
    change = read_change(effects, state, record, sender, calls)
    for call in calls:
        simulate_call(state, call, sender)
    gas = tuple(
        estimate_gas(state.endpoint, call.target, call.calldata, sender, state.block)
        for call in calls
    )
    cautions = (
        *call_cautions(calls, change.after, sender, None),
        *last_nodes_cautions(calls, state),
        *shared_url_cautions(calls, state),
    )
    return Plan(state.block, sender, senders, accounts, change, gas, cautions)


def simulate_call(state: ContractState, call: Call, sender: str) -> None:
    """Make a call at the state's block as its sender, without sending it.

    Raises RefusedRequest with the contract's own error where the call reverts.
    """
    try:
        state.endpoint.call(call.target, call.calldata, state.block, sender)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        words = shipped_interface(call.contract).revert_words(error)
        place = f"{call.function} at block {state.block}"
        raise RefusedRequest("simulation", "no revert", words, place) from error


def plan_again(
    effects: Effects,
    endpoint: Endpoint,
    record: DeploymentRecord,
    shown: Plan,
    sender: str,
) -> Plan:
    """Plan the same calls as their sender at the newest block, right before they are signed.

    Raises as ``plan_change``, and ConfigurationError where the calls would now change anything else
    than was shown.
    """
    state = ContractState(endpoint, endpoint.head().reference)
    plan = plan_change(effects, state, record, shown.calls, sender)
    if plan.change != shown.change:
        expected, got = ("; ".join(found.change.difference) for found in (shown, plan))
        raise ConfigurationError("change", f"as shown: {expected}", got, f"block {plan.block}")
    return plan


def sign_change(
    sending: Sending, record: DeploymentRecord, plan: Plan, signer: Signer
) -> SignedTransaction:
    """Sign a plan of one call, which was made for the signer's account.

    Raises as ``sign_request``.
    """
    ((call,), (gas,)) = plan.calls, plan.gas
    request = TransactionRequest(record.chain_id, call.target, call.calldata, gas)
    return sign_request(sending, signer, request)


def sign_request(
    sending: Sending, signer: Signer, request: TransactionRequest
) -> SignedTransaction:
    """Sign a transaction with the signer's next nonce, and prove that this was signed.

    Raises as ``draft_transaction``, and InvalidSignature where the signer signed anything else.
    """
    fields = draft_transaction(sending.endpoint, signer.address, request, sending.max_cost)
    raw = sign_transaction(signer, fields)
    return SignedTransaction(raw, keccak256(raw))


def execute_change(
    effects: Effects, sending: Sending, plan: Plan, signed: SignedTransaction
) -> Receipt:
    """Send the plan's signed call and prove from the chain that the call did what was planned.

    This is so if the receipt has status 1 and the facts, read back at the receipt's block, are the
    planned ones. Raises TransactionFailed otherwise, or where no receipt comes in time.
    """
    (call,) = plan.calls
    receipt = sending.send(signed)
    explain = partial(explain_revert, sending.endpoint, plan.calls, plan.sender, receipt)
    require_success(receipt, call.function, explain)
    state = ContractState(sending.endpoint, receipt.block.reference)
    if faults := unmet(effects, state, plan.change):
        expected = "; ".join(plan.change.difference)
        raise TransactionFailed(call.function, expected, "; ".join(faults), receipt.place)
    return receipt


def explain_revert(endpoint: Endpoint, calls: Sequence[Call], sender: str, receipt: Receipt) -> str:
    """Explain why calls failed, in a contract's words, by making each again on the block before."""
    parent = BlockReference(receipt.block.number - 1, receipt.block.parent_hash)
    for call in calls:
        try:
            endpoint.call(call.target, call.calldata, parent, sender)
        except RefusedRequest as error:
            return f"a revert: {shipped_interface(call.contract).revert_words(error)}"
    return "a revert, which the block before does not explain"


def _senders(effects: Effects, state: ContractState, calls: Sequence[Call]) -> tuple[str, ...]:
    """Return the accounts that may make all the calls, in the order of the first call's effect."""
    allowed = [effects[call.function].senders(state, call) for call in calls]
    if not allowed:
        raise ConfigurationError("calls", "at least one", "none")
    common = reduce(lambda some, more: tuple(item for item in some if item in more), allowed)
    if not common:
        got = "; ".join(
            f"{call.function} of {call.contract} by {' or '.join(addresses)}"
            for call, addresses in zip(calls, allowed, strict=True)
        )
        raise ConfigurationError("sender", "one account that may make all the calls", got)
    return common
