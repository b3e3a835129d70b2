"""A transaction called on a block: returns whether it reverts, and the contract's own error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import SELECTOR_LENGTH, shipped_interface
from chainkit.contracts.state import ContractState
from chainkit.council.calls import FUNCTIONS
from chainkit.council.safe import SafeTransaction
from chainkit.council.safe.account import SafeAccount
from chainkit.council.simulation.layouts import SAFE
from chainkit.council.simulation.safe_overrides import (
    EXECUTOR,
    Approval,
    approved_execution,
    suppose_approval,
)
from chainkit.council.simulation.trace import Message, Words, state_overrides
from chainkit.errors import AccessRefused, ConfigurationError, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x

_APPROVED_HASHES: Final = keccak256(b"approvedHashes(address,bytes32)")[:SELECTOR_LENGTH]
_WORD: Final = 32

Contracts = Mapping[bytes, str]
"""Names by address, 20 bytes, of those that may be called."""


def try_message(state: ContractState, record: DeploymentRecord, message: Message) -> None:
    """Call a transaction of an account with a key at the state's block.

    Raises RefusedRequest in the contract's own words where it reverts.
    """
    call_message(state, contracts_of(record), message)


def try_safe_transaction(
    state: ContractState,
    record: DeploymentRecord,
    transaction: SafeTransaction,
    account: SafeAccount,
    multi_send: bytes,
) -> None:
    """Call the execution of a Safe's transaction at the state's block, with its approval supposed.

    ``multi_send`` is the 20-byte address of MultiSendCallOnly. Raises RefusedRequest where the
    execution reverts, with the error of the called contract, and ConfigurationError where the
    endpoint has no overrides.
    """
    contracts = contracts_of(record, transaction.safe)
    approval = suppose_approval(transaction, account)
    require_overrides(state, transaction, approval)
    try:
        execute(state, contracts, transaction, approval)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        # The Safe hides the reason of a revert: each call by itself may show the reason.
        words = _refusals(state, contracts, inner_messages(transaction, multi_send))
        if not words:
            raise
        place = f"each call by itself at block {state.block}"
        raise RefusedRequest("simulation", "no revert", "; ".join(words), place) from error


def _refusals(state: ContractState, contracts: Contracts, messages: Sequence[Message]) -> list[str]:
    """Return why calls are refused, those that are; each is made as if there were no other."""
    found = []
    for number, message in enumerate(messages, start=1):
        try:
            call_message(state, contracts, message)
        except AccessRefused:
            raise
        except RefusedRequest as error:
            found.append(f"call {number} of {contracts[message.to]}: {error.got}")
    return found


def contracts_of(record: DeploymentRecord, safe: bytes | None = None) -> Contracts:
    """Return the contracts that a council calls, and its Safe, which may call itself."""
    names = {
        contract.address: contract.name
        for contract in record.contracts
        if contract.name in FUNCTIONS
    }
    return names if safe is None else {**names, safe: SAFE}


def inner_messages(transaction: SafeTransaction, multi_send: bytes) -> Sequence[Message]:
    """Return the calls that a Safe's transaction makes, as messages of the Safe.

    Raises MalformedData where the transaction makes anything but calls, as
    ``SafeTransaction.inner_calls``.
    """
    return [
        Message(transaction.safe, call.target, call.calldata)
        for call in transaction.inner_calls(multi_send)
    ]


def call_message(
    state: ContractState, contracts: Contracts, message: Message, overrides: Words | None = None
) -> bytes:
    """Return the answer to a message. Raises RefusedRequest with a revert's error."""
    supposed = state_overrides(overrides) if overrides else None
    try:
        return state.endpoint.call_message(message.request, state.block, supposed)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        name = contracts[message.to]
        words = shipped_interface(name).revert_words(error)
        place = f"{name} at block {state.block}"
        raise RefusedRequest("simulation", "no revert", words, place) from error


def execute(
    state: ContractState, contracts: Contracts, transaction: SafeTransaction, approval: Approval
) -> None:
    """Call the execution. Raises RefusedRequest where it reverts, or the Safe reports a failure."""
    message = approved_execution(transaction, approval)
    answer = call_message(state, contracts, message, approval.overrides)
    if int.from_bytes(answer, "big") != 1:
        got, place = hex0x(answer), f"{SAFE} at block {state.block}"
        raise RefusedRequest("simulation", "that the Safe says 1, for success", got, place)


def require_overrides(
    state: ContractState, transaction: SafeTransaction, approval: Approval
) -> None:
    """Ask the Safe about the overridden approval. Raises ConfigurationError where it is absent."""
    data = _APPROVED_HASHES + approval.signatures[:_WORD] + transaction.hash
    message = Message(EXECUTOR, transaction.safe, data)
    subject, expected = f"eth_call at {state.endpoint.name}", "support of state overrides"
    try:
        answer = call_message(state, {transaction.safe: SAFE}, message, approval.overrides)
    except AccessRefused:
        raise
    except RefusedRequest as error:
        raise ConfigurationError(subject, expected, error.got) from error
    if int.from_bytes(answer, "big") != 1:
        raise ConfigurationError(subject, expected, "an answer without them")
