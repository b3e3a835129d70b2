"""A new proposal: calls that were read, simulated and found to change something at one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainkit.chain.sending import TransactionRequest, draft_transaction
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call, Change, read_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.changes import simulate_call
from chainkit.council.proposal.account_state import AccountState
from chainkit.council.proposal.grounds import (
    SECONDS_PER_DAY,
    Evidence,
    Grounds,
    check_reason,
    current_time,
)
from chainkit.council.proposal.proposal import Fees, Proposal
from chainkit.council.proposal.status import running_code
from chainkit.errors import ConfigurationError
from chainkit.text.ether import MAX_COST
from chainkit.types import BlockHeader


@dataclass(frozen=True, slots=True)
class Terms:
    """The drafter's choices beside the calls."""

    reason: str
    evidence: tuple[Evidence, ...]
    days: int
    """Seconds until the proposal expires, from the block of the draft, or the clock if that is
    later."""
    nonce: int | None
    """None for the account's next one."""
    max_cost: int = MAX_COST
    """Wei: the most that the gas of a plain account's transaction may cost."""


def draft(
    account: AccountState,
    record: DeploymentRecord,
    head: BlockHeader,
    calls: Sequence[Call],
    terms: Terms,
) -> Proposal:
    """Draft a proposal of calls, all read at ``head``, which is the block of the account's state.

    Raises ConfigurationError where the account may not make a call, or the call changes nothing,
    and RefusedRequest with the contract's error where the simulation of a call reverts. The draft
    of a plain account's proposal may also raise as ``draft_transaction``.
    """
    state, council = account.contracts, account.council
    change = read_change(EFFECTS, state, record, council.address, calls)
    for call in calls:
        simulate_call(state, call, council.address)
    if terms.nonce is not None and terms.nonce < account.nonce:
        expected = f"{account.nonce}, the account's next, or a later one"
        raise ConfigurationError("nonce", expected, terms.nonce)
    nonce = account.nonce if terms.nonce is None else terms.nonce
    grounds = _grounds(state, change, head, terms)
    fees = None
    if council.safe is None:
        fees = _fees(account, calls, grounds, terms.max_cost)
    return Proposal.make(record, council, calls, grounds, nonce, fees)


def _grounds(state: ContractState, change: Change, head: BlockHeader, terms: Terms) -> Grounds:
    return Grounds(
        reason=check_reason(terms.reason),
        evidence=terms.evidence,
        before=change.before,
        after=change.after,
        runs=running_code(change.calls, state),
        expires=current_time(head.timestamp) + terms.days * SECONDS_PER_DAY,
    )


def _fees(
    account: AccountState, calls: Sequence[Call], grounds: Grounds, max_cost: int
) -> Fees | None:
    if len(calls) != 1:
        return None  # Proposal.make says why that cannot be
    (call,) = calls
    endpoint, council = account.contracts.endpoint, account.council
    data = call.calldata + grounds.trailer
    gas = estimate_gas(endpoint, call.target, data, council.address, account.block)
    request = TransactionRequest(council.chain_id, call.target, data, gas)
    fields = draft_transaction(endpoint, council.address, request, max_cost)
    return Fees(fields["gas"], fields["maxFeePerGas"], fields["maxPriorityFeePerGas"])
