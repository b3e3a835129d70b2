"""Overrides for a Safe's transaction, as if its owners had signed: for one call only.

The Safe itself checks everything that it always checks, with its own owners and threshold. The
overrides only assume that enough owners have approved the hash with ``approveHash``: signatures of
the kind that refers to this (V 1, R the owner) replace those that do not exist yet. A transaction
that waits for others is taken as the next: its nonce is overridden, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.council.safe import SafeTransaction, approval
from chainkit.council.safe.account import SafeAccount
from chainkit.council.simulation.layouts import SAFE_NONCE_SLOT
from chainkit.council.simulation.slots import mapping_slot
from chainkit.council.simulation.trace import Message, Words
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH

APPROVED_HASHES_SLOT: Final = 8

EXECUTOR: Final = keccak256(b"chainkit account that executes nothing but simulations")[
    :ADDRESS_LENGTH
]
"""The executor, an address without a key: a Safe asks no approval of an owner."""

_WORD: Final = 32


@dataclass(frozen=True, slots=True)
class Approval:
    """A simulation's assumption about the owners."""

    signatures: bytes
    """65 bytes for each owner, in the order of their addresses, as a Safe wants them."""
    overrides: Words
    """The slots of the Safe's approvals, and of its nonce if the transaction is to wait."""


def suppose_approval(transaction: SafeTransaction, account: SafeAccount) -> Approval:
    """Return the approval of a transaction by as many of the Safe's owners as must agree."""
    owners = sorted(bytes.fromhex(owner[2:]) for owner in account.owners)[: account.threshold]
    words = [owner.rjust(_WORD, b"\0") for owner in owners]
    slots = [
        mapping_slot(mapping_slot(APPROVED_HASHES_SLOT, word), transaction.hash) for word in words
    ]
    overrides = {(transaction.safe, slot): 1 for slot in slots}
    if transaction.nonce > account.nonce:
        overrides[transaction.safe, SAFE_NONCE_SLOT] = transaction.nonce
    return Approval(b"".join(map(approval, owners)), overrides)


def approved_execution(transaction: SafeTransaction, approval: Approval) -> Message:
    """Return the call that executes the transaction with that approval."""
    return Message(EXECUTOR, transaction.safe, transaction.exec_calldata(approval.signatures))
