"""The transaction that used a proposal's nonce: the proposal's own, whoever sent it, or another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from chainkit.chain import Endpoint, LogFilter
from chainkit.chain.transactions import fetch_receipt
from chainkit.contracts.state import ContractState
from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.proposal import Proposal
from chainkit.council.safe import SafeTransaction, find_execution
from chainkit.council.simulation.layouts import SAFE_NONCE_SLOT
from chainkit.errors import EndpointUnavailable, RefusedRequest
from chainkit.signatures import keccak256
from chainkit.types import BlockHeader, BlockReference

_TRAIL: Final = "'chainkit council log' shows"
_TOPICS: Final = tuple(
    keccak256(f"{name}(bytes32,uint256)".encode())
    for name in ("ExecutionSuccess", "ExecutionFailure")
)


@dataclass(frozen=True, slots=True)
class NonceUse:
    """The chain's statement of a used nonce."""

    outcome: Literal["success", "failure"] | None
    """The outcome of the proposal itself; None where nothing shows that it was executed."""
    block: BlockReference | None
    """The block in which the nonce was used; None where the endpoint cannot name the block."""
    transaction_hash: bytes | None
    """32 bytes: the transaction that executed the proposal."""

    @property
    def is_own(self) -> bool:
        """Whether the proposal's own execution used the nonce."""
        return self.outcome is not None

    def __str__(self) -> str:
        """The explanation for a person, safe to print."""
        if self.block is None:
            return f"{_TRAIL} by what"
        if self.outcome is None or self.transaction_hash is None:
            return f"another transaction was executed in block {self.block}; {_TRAIL} which"
        done = "was executed" if self.outcome == "success" else "was executed, and failed,"
        transaction = f"transaction 0x{self.transaction_hash.hex()}"
        return f"this proposal {done} in block {self.block} by {transaction}"


_UNKNOWN: Final = NonceUse(None, None, None)


def find_nonce_use(proposal: Proposal, state: ContractState) -> NonceUse:
    """Find what used a proposal's nonce, which at the state's block is used."""
    transaction = proposal.transaction
    try:
        if isinstance(transaction, AccountTransaction):
            return _use_by_account(transaction, proposal, state)
        return _use_by_safe(transaction, state)
    except (RefusedRequest, EndpointUnavailable):
        # Many endpoints keep only new blocks' state: the proposal is no less past for that.
        return _UNKNOWN


def is_nonce_used(transaction: SafeTransaction, state: ContractState) -> bool:
    """Return whether at the state's block the Safe can no longer execute a transaction.

    A block in which there is no Safe yet has used no nonce.
    """
    return state.word(transaction.safe, SAFE_NONCE_SLOT) > transaction.nonce


def _use_by_safe(transaction: SafeTransaction, state: ContractState) -> NonceUse:
    block = _block_of_use(transaction, state)
    logs = [
        log
        for log in state.endpoint.logs_of([block], LogFilter((transaction.safe,), _TOPICS))
        if log.topics[1:] == (transaction.hash,)
    ]
    outcome = find_execution(logs, transaction.safe, transaction.hash)
    return NonceUse(outcome, block.reference, logs[0].transaction_hash if outcome else None)


def _use_by_account(
    transaction: AccountTransaction, proposal: Proposal, state: ContractState
) -> NonceUse:
    """Ask for the signed transaction itself; only the trail can find any other transaction."""
    for signature in proposal.signatures.values():
        receipt = fetch_receipt(state.endpoint, keccak256(transaction.raw(signature)))
        if receipt is not None and receipt.block.number <= state.block.number:
            outcome: Literal["success", "failure"] = "success" if receipt.succeeded else "failure"
            return NonceUse(outcome, receipt.block.reference, receipt.transaction_hash)
    return _UNKNOWN


def _block_of_use(transaction: SafeTransaction, state: ContractState) -> BlockHeader:
    """Return the block in which the Safe's nonce was used, searched from the state's block back.

    A step of the search takes two requests, and there are twice as many steps as the number of
    blocks back has bits.
    """
    endpoint = state.endpoint
    used, distance = state.block.number, 1
    unused = -1
    while used > 0 and unused < 0:
        earlier = max(used - distance, 0)
        if _was_used(transaction, endpoint, earlier):
            used, distance = earlier, 2 * distance
        else:
            unused = earlier
    while used - unused > 1:
        middle = (used + unused) // 2
        if _was_used(transaction, endpoint, middle):
            used = middle
        else:
            unused = middle
    return endpoint.header(used)


def _was_used(transaction: SafeTransaction, endpoint: Endpoint, number: int) -> bool:
    block = endpoint.header(number).reference
    return is_nonce_used(transaction, ContractState(endpoint, block))
