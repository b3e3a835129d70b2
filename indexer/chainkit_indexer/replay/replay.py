"""Sends transactions that a reorg dropped again, in their original order (XIP-49 §2.1.2).

That is a best effort, as the XIP says: a sender may have used the nonce otherwise meanwhile, and
block producers choose the order in which they are mined again. Nothing is signed here, and nothing
is written: the indexer reads a replayed transaction like any other, and updates the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, select

from chainkit.chain import Endpoint
from chainkit.chain.sending import SignedTransaction, send_transaction
from chainkit.chain.transactions import fetch_receipt
from chainkit.contracts.interface import shipped_interface
from chainkit.errors import (
    AccessRefused,
    ConfigurationError,
    MalformedData,
    OutcomeUnknown,
    RefusedRequest,
    TransactionFailed,
)
from chainkit.text.printable import printable
from chainkit.types import BlockHeader
from chainkit_indexer.replay.rebuild import SentTransaction, read_transaction
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.store import Store

ACCEPTANCE_SECONDS: Final = 5.0
"""How long an endpoint may take to show a transaction that it accepted."""

_POLL_SECONDS: Final = 0.1


class Fate(StrEnum):
    """Outcomes for a dropped transaction."""

    MINED = "mined again"
    WAITING = "waiting"
    """In the endpoint's pool already."""
    WOULD_BE_SENT = "would be sent"
    SENT = "sent"
    NOT_REPLAYED = "not replayed"


@dataclass(frozen=True, slots=True)
class DroppedTransaction:
    """A transaction of which the journal holds a payload that is not on the chain."""

    reorg_id: int
    """The last reorg that dropped the transaction."""
    block_number: int
    """The transaction's old place."""
    transaction_index: int
    transaction_hash: bytes
    raw: bytes | None
    """The signed bytes; None where they were not kept."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The fate of one dropped transaction, found or brought about."""

    dropped: DroppedTransaction
    fate: Fate
    why: str
    """For a person; safe to print."""
    transaction: SentTransaction | None = None
    """The transaction's request, where that had to be looked at."""


@dataclass
class _Account:
    """A sender, with its transactions that were replayed so far."""

    mined_nonce: int
    """The sender's next nonce, by the head."""
    next_nonce: int
    """The same after all that waits, and all that was replayed."""
    balance: int
    """In wei, less what was replayed."""


class _CannotReplay(Exception):
    """The reason why a transaction cannot be sent again."""


def read_dropped(connection: Connection, reorg_id: int | None) -> list[DroppedTransaction]:
    """Return what one reorg dropped, or all reorgs, in the original order, each transaction once.

    Raises ConfigurationError where there was no such reorg.
    """
    if reorg_id is not None:
        known = connection.scalar(select(schema.reorgs.c.id).where(schema.reorgs.c.id == reorg_id))
        if known is None:
            raise ConfigurationError(f"reorg {reorg_id}", "one that this database saw", "none")
    journal, raws = schema.journal, schema.raw_transactions
    names = ("reorg_id", "block_number", "transaction_index", "transaction_hash")
    query = (
        select(*(journal.c[name] for name in names), raws.c.raw)
        .join(raws, raws.c.transaction_hash == journal.c.transaction_hash, isouter=True)
        .where(journal.c.outcome == schema.DROPPED)
        .order_by(*(journal.c[name] for name in names[:3]))
    )
    if reorg_id is not None:
        query = query.where(journal.c.reorg_id == reorg_id)
    rows = connection.execute(query)
    found = {row.transaction_hash: DroppedTransaction(*tuple(row)) for row in rows}
    return sorted(
        found.values(), key=lambda each: (each.block_number, each.transaction_index, each.reorg_id)
    )


def replay(
    endpoint: Endpoint,
    store: Store,
    reorg_id: int | None = None,
    broadcast: bool = False,
    acceptance_seconds: float = ACCEPTANCE_SECONDS,
) -> Iterator[Replayed]:
    """Check each dropped transaction in the original order; with ``broadcast`` also send it.

    Without ``broadcast`` the result is what would be done, as if each transaction were accepted.
    The endpoint must serve the database's chain. Raises ChainError where it gives no answer,
    ConfigurationError for an unknown reorg.
    """
    with store.reading() as connection:
        dropped = read_dropped(connection, reorg_id)
    replayer = _Replayer(endpoint, store.identity, broadcast, acceptance_seconds)
    return map(replayer.replay, dropped)


class _Replayer:
    def __init__(
        self, endpoint: Endpoint, identity: Identity, broadcast: bool, acceptance_seconds: float
    ) -> None:
        self._endpoint = endpoint
        self._identity = identity
        self._broadcast = broadcast
        self._acceptance_seconds = acceptance_seconds
        self._accounts: dict[str, _Account] = {}

    def replay(self, dropped: DroppedTransaction) -> Replayed:
        receipt = fetch_receipt(self._endpoint, dropped.transaction_hash)
        if receipt is not None:
            block = receipt.block.reference
            if receipt.succeeded:
                return Replayed(dropped, Fate.MINED, f"in block {block}")
            return Replayed(dropped, Fate.NOT_REPLAYED, f"reverted in block {block}")
        if self._endpoint.transaction(dropped.transaction_hash) is not None:
            return Replayed(dropped, Fate.WAITING, "in the endpoint's pool")
        if dropped.raw is None:
            return Replayed(dropped, Fate.NOT_REPLAYED, "its signed transaction was not kept")
        try:
            transaction = read_transaction(dropped.raw)
        except MalformedData as error:
            return Replayed(dropped, Fate.NOT_REPLAYED, printable(str(error)))
        try:
            fate, why = self._replay(transaction)
        except _CannotReplay as reason:
            fate, why = Fate.NOT_REPLAYED, str(reason)
        return Replayed(dropped, fate, why, transaction)

    def _replay(self, transaction: SentTransaction) -> tuple[Fate, str]:
        head = self._endpoint.head()
        if transaction.chain_id not in (None, self._identity.chain_id):
            raise _CannotReplay(f"signed for the chain {transaction.chain_id}")
        account = self._account(transaction.sender, head)
        _check_nonce(account, transaction)
        self._check_fee(transaction, head)
        if transaction.highest_cost > account.balance:
            raise _CannotReplay(
                f"may cost {transaction.highest_cost} wei, its sender has {account.balance}"
            )
        self._check_call(transaction, head)
        if self._broadcast:
            self._send(transaction)
        account.next_nonce += 1
        account.balance -= transaction.highest_cost
        fate = Fate.SENT if self._broadcast else Fate.WOULD_BE_SENT
        return fate, f"nonce {transaction.nonce} of {transaction.sender}"

    # ------------------------------------------------------------------ judging

    def _account(self, sender: str, head: BlockHeader) -> _Account:
        if sender not in self._accounts:
            self._accounts[sender] = _Account(
                mined_nonce=self._endpoint.transaction_count(sender, head.reference),
                next_nonce=self._endpoint.pending_transaction_count(sender),
                balance=self._endpoint.balance(sender, head.reference),
            )
        return self._accounts[sender]

    def _check_fee(self, transaction: SentTransaction, head: BlockHeader) -> None:
        try:
            base_fee = self._endpoint.next_base_fee(head.reference)
        except RefusedRequest:
            return  # a chain without a base fee
        if transaction.fee_per_gas < base_fee:
            fee = transaction.fee_per_gas
            raise _CannotReplay(f"pays at most {fee} wei per gas, the next block asks {base_fee}")

    def _check_call(self, transaction: SentTransaction, head: BlockHeader) -> None:
        """Ask the head whether the same call would succeed."""
        call = {
            "from": transaction.sender,
            "data": "0x" + transaction.calldata.hex(),
            "value": hex(transaction.value),
            "gas": hex(transaction.gas),
            **({"to": "0x" + transaction.to.hex()} if transaction.to else {}),
        }
        try:
            self._endpoint.call_message(call, head.reference)
        except AccessRefused:
            raise
        except RefusedRequest as error:
            # Both payload contracts have the same errors.
            words = shipped_interface("GroupMessages").revert_words(error)
            raise _CannotReplay(f"would revert: {words}") from error

    # ------------------------------------------------------------------ sending

    def _send(self, transaction: SentTransaction) -> None:
        outcome = "sent"
        try:
            send_transaction(self._endpoint, SignedTransaction(transaction.raw, transaction.hash))
        except OutcomeUnknown as error:
            outcome = f"refused: {printable(str(error.got))}"
        except (RefusedRequest, TransactionFailed) as error:
            raise _CannotReplay(f"refused: {printable(str(error.got))}") from error
        deadline = time.monotonic() + self._acceptance_seconds
        while self._endpoint.transaction(transaction.hash) is None:
            if time.monotonic() >= deadline:
                raise _CannotReplay(
                    f"{outcome}, but unknown to the endpoint {self._acceptance_seconds:g} s later"
                )
            time.sleep(_POLL_SECONDS)


def _check_nonce(account: _Account, transaction: SentTransaction) -> None:
    nonce, sender = transaction.nonce, transaction.sender
    if nonce < account.mined_nonce:
        raise _CannotReplay(f"replaced: another transaction has nonce {nonce} of {sender}")
    if nonce < account.next_nonce:
        raise _CannotReplay(f"replaced: one that waits has nonce {nonce} of {sender}")
    if nonce > account.next_nonce:
        raise _CannotReplay(f"no transaction has nonce {account.next_nonce} of {sender} before it")
