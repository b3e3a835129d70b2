"""A proposal's changes, slot by slot, before anybody has signed it."""

from __future__ import annotations

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.state import ContractState
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.council import Council
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe.account import read_account
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
    proposal: Proposal, state: ContractState, record: DeploymentRecord, council: Council
) -> StateDifference:
    """Run a proposal on the state's block and return what it changes; every slot has its name.

    A Safe's transaction is run with the owners' approval supposed, and its nonce if that is a later
    one than the Safe's next. Raises RefusedRequest in the contract's own words where it reverts,
    UndecodedState where something changes that cannot be named, and NoTracing where the endpoint
    cannot tell what changes.
    """
    transaction = proposal.transaction
    if isinstance(transaction, AccountTransaction):
        found = simulate_message(state, record, proposal.calls, _message(transaction))
    else:
        account = read_account(state, transaction.safe)
        found = simulate_safe_transaction(
            state, record, proposal.calls, transaction, account, _multi_send(council)
        )
    found.require_decoded()
    return found


def try_proposal(
    proposal: Proposal, state: ContractState, record: DeploymentRecord, council: Council
) -> None:
    """Run a proposal on the state's block without asking what it changes.

    For an endpoint without tracing. Raises RefusedRequest as ``simulate_proposal`` does.
    """
    transaction = proposal.transaction
    if isinstance(transaction, AccountTransaction):
        try_message(state, record, _message(transaction))
        return
    account = read_account(state, transaction.safe)
    try_safe_transaction(state, record, transaction, account, _multi_send(council))


def _message(transaction: AccountTransaction) -> Message:
    return Message(transaction.sender, transaction.to, transaction.data)


def _multi_send(council: Council) -> bytes:
    if council.safe is None:
        raise ConfigurationError("council file", "a Safe", "a plain account")
    return council.safe.multi_send
