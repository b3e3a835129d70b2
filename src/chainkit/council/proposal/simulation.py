"""A proposal's changes, slot by slot, before anybody has signed the proposal."""

from __future__ import annotations

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.council.proposal.account_state import AccountState
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe.account import SafeAccount
from chainkit.council.simulation import (
    Message,
    StateDifference,
    simulate_message,
    simulate_safe_transaction,
    try_message,
    try_safe_transaction,
)
from chainkit.errors import ConfigurationError


def simulate_proposal(
    proposal: Proposal, account: AccountState, record: DeploymentRecord
) -> StateDifference:
    """Run a proposal on the account's block and return its changes; every slot has its name.

    A Safe's transaction is run as if its owners had approved it, and with its own nonce if that is
    later than the Safe's next. Raises RefusedRequest with the contract's own error where the
    transaction reverts, UndecodedState where a change cannot be named, and NoTracing where the
    endpoint cannot trace.
    """
    state, transaction = account.contracts, proposal.transaction
    if isinstance(transaction, AccountTransaction):
        found = simulate_message(state, record, proposal.calls, _message(transaction))
    else:
        safe, multi_send = _safe(account)
        found = simulate_safe_transaction(
            state, record, proposal.calls, transaction, safe, multi_send
        )
    found.require_decoded()
    return found


def try_proposal(proposal: Proposal, account: AccountState, record: DeploymentRecord) -> None:
    """Run a proposal on the account's block without its changes.

    For an endpoint without tracing. Raises RefusedRequest as ``simulate_proposal`` does.
    """
    state, transaction = account.contracts, proposal.transaction
    if isinstance(transaction, AccountTransaction):
        try_message(state, record, _message(transaction))
        return
    try_safe_transaction(state, record, transaction, *_safe(account))


def _message(transaction: AccountTransaction) -> Message:
    return Message(transaction.sender, transaction.to, transaction.data)


def _safe(account: AccountState) -> tuple[SafeAccount, bytes]:
    settings = account.council.safe
    if account.safe is None or settings is None:
        raise ConfigurationError("council file", "a Safe", "a plain account")
    return account.safe, settings.multi_send
