"""The paying account: its nonces, and its transactions until each has a receipt.

Nonces are given out one after the other under a lock, and each signed transaction is journalled
before the transaction is sent: after a kill the same bytes are sent again, and the chain takes
them once. A transaction that a reorg dropped is sent again, too: all later nonces wait for it. A
transaction that waits too long is replaced by one with the same nonce and higher fees. A nonce that
nothing uses, below those of late transactions, gets an empty transaction.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, Protocol

from eth_abi.abi import decode

from chainkit.chain import Endpoint
from chainkit.chain.sending import (
    SignedTransaction,
    check_cost,
    send_transaction,
    transaction_fees,
    with_margin,
)
from chainkit.chain.transactions import estimate_gas, fetch_receipt
from chainkit.council.signing.key import KeySigner
from chainkit.errors import (
    ConfigurationError,
    OutcomeUnknown,
    RefusedRequest,
    RetryableChainError,
    StateUnavailable,
)
from chainkit.ethereum.delegation import delegate_of
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.signatures import keccak256
from chainkit.text.ether import MAX_COST
from chainkit.types import Receipt
from chainkit_gateway.journal import Journal
from chainkit_gateway.nonces import next_nonce
from chainkit_gateway.routing import route
from chainkit_gateway.transactions import Call, call_of, fields_of, raised, settlement_of
from chainkit_gateway.types import Publication, Sent

REPLACE_SECONDS: Final = 30.0
"""How long a transaction waits until a transaction with higher fees replaces it."""

_RECHECKED_BLOCKS: Final = 64
"""How deep below the head a reorg may still change what a transaction cost."""

PAYLOAD_SECONDS: Final = 86_400.0
"""How long the journal keeps a payload at least; one in a block goes below the rechecked blocks."""

_SELECTOR_LENGTH: Final = 4

_MOST_SETTLED: Final = 100
"""Transactions whose receipts are read at a time."""


class Pool(Protocol):
    """Chooses endpoints."""

    def choose(self) -> Endpoint:
        """Return the endpoint to ask now."""
        ...

    def others(self, endpoint: Endpoint) -> Sequence[Endpoint]:
        """Return the endpoints of other hosts than this one's that may be asked now."""
        ...


Permit = Callable[[Publication, int], None]
"""Raises a refusal where a publication's client may not spend so many wei more."""


def all_permitted(publication: Publication, wei: int) -> None:
    """Permit everything."""


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """The outcome of ``PayerAccount.process_pending``, in transactions."""

    resent: int
    replaced: int
    waiting: int
    """Transactions that were sent and are not mined at the head."""
    oldest_seconds: float = 0.0
    """Time since the oldest waiting transaction was first sent."""
    not_kept: int = 0
    """Transactions that the endpoint takes again and again, and does not know afterwards."""


class PayerAccount:
    """One account; its methods may be called from several threads."""

    def __init__(
        self,
        pool: Pool,
        signer: KeySigner,
        journal: Journal,
        contracts: Iterable[PayloadContract],
        *,
        permit: Permit = all_permitted,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the chain, the signer, the journal of transactions, and what these call."""
        self._pool = pool
        self._signer = signer
        self._journal = journal
        self._contracts = {each.address: each for each in contracts}
        self._permit = permit
        self._now_ns = now_ns
        self._lock = threading.Lock()

    def send(self, publication: Publication, call: Call) -> int:
        """Send a publication's transaction, unless one was sent, and return the nonce.

        After a revert, and where a foreign transaction has used the nonce for good, a new
        transaction is sent. A transaction that a pool may have counts as sent. Raises
        RefusedRequest where the contract or the endpoint refuses the transaction,
        ConfigurationError where it costs too much, what ``permit`` raises, and what endpoints
        raise.
        """
        endpoint = self._pool.choose()
        with self._lock:
            self._resend_lost(endpoint, self._waiting(endpoint))
            begun = self._journal.transactions_of(publication.digest)
            if begun and not is_reverted(begun) and not self._is_taken(endpoint, begun):
                return begun[-1].nonce
            return self._sent_anew(endpoint, publication, call)

    def fallen(self) -> list[tuple[Publication, int]]:
        """Return payloads that a reorg left below an id that they had, and the highest id of each.

        Raises what endpoints raise.
        """
        lowest = max(0, self._pool.choose().head().number - _RECHECKED_BLOCKS)
        return [
            (self._publication(digest), sequence_id)
            for digest, sequence_id in self._journal.fallen_from(lowest).items()
        ]

    def send_again(self, publication: Publication) -> None:
        """Send a publication whose transactions are mined in one more. Raises as ``send``."""
        endpoint = self._pool.choose()
        with self._lock:
            call = call_of(self._journal.transactions_of(publication.digest)[-1].raw)
            self._sent_anew(endpoint, publication, call)

    def find_receipt(self, digest: bytes, nonce: int) -> Receipt | None:
        """Return the receipt of a publication's nonce, whichever of its transactions was mined.

        Writes the cost to the journal. Raises what endpoints raise, except retryable errors.
        """
        endpoint = self._pool.choose()
        sent = [each for each in self._journal.transactions_of(digest) if each.nonce == nonce]
        return self._settled(endpoint, sent)

    def process_pending(self) -> PendingOutcome:
        """Resend lost transactions, replace late ones, and write what mined ones cost.

        Raises what endpoints raise.
        """
        endpoint = self._pool.choose()
        with self._lock:
            waiting = self._waiting(endpoint)
            lost = self._resend_lost(endpoint, waiting)
            self._fill_gap(endpoint, waiting)
            late = [group[-1] for group in waiting if self._is_late(group[-1])]
            # Higher fees help only a transaction that a pool has.
            pooled = [each for each in late if each.nonce not in lost]
            replaced = sum(self._replaced(endpoint, each) for each in pooled)
        self._take_back(endpoint)
        head = endpoint.head()
        mined = endpoint.transaction_count(self._signer.address, head.reference)
        unsettled = self._journal.unsettled_below(mined, _MOST_SETTLED)
        for group in _by_nonce(unsettled):
            self._settled(endpoint, group)
        old = self._now_ns() - int(PAYLOAD_SECONDS * 10**9)
        self._journal.drop_payloads(old, head.number - _RECHECKED_BLOCKS, _MOST_SETTLED)
        oldest = (self._now_ns() - waiting[0][0].sent_ns) / 10**9 if waiting else 0.0
        not_kept = len(late) - len(pooled)
        return PendingOutcome(len(lost), replaced, len(waiting), max(0.0, oldest), not_kept)

    def depth(self, receipt: Receipt) -> int:
        """Return how many blocks lie on top of a receipt's block. Raises what endpoints raise."""
        return self._pool.choose().head().number - receipt.block.number

    def delegate(self) -> bytes | None:
        """Return the contract that may act for the account (EIP-7702), None where none may.

        Raises what endpoints raise.
        """
        endpoint = self._pool.choose()
        address = bytes.fromhex(self._signer.address[2:])
        return delegate_of(endpoint.code(address, endpoint.head().reference))

    def balance(self) -> int:
        """Return the account's wei at the head. Raises what endpoints raise."""
        endpoint = self._pool.choose()
        return endpoint.balance(self._signer.address, endpoint.head().reference)

    def _publication(self, digest: bytes) -> Publication:
        begun = self._journal.find(digest)
        sent = self._journal.transactions_of(digest)
        _, payload = decode(("bytes32", "bytes"), call_of(sent[-1].raw).data[_SELECTOR_LENGTH:])
        return route(payload, "" if begun is None else begun.client)

    def _sent_anew(self, endpoint: Endpoint, publication: Publication, call: Call) -> int:
        others, own = self._pool.others(endpoint), self._journal.next_nonce()
        nonce = next_nonce(endpoint, others, self._signer.address, own)
        fields = self._drafted(endpoint, call, nonce)
        self._permit(publication, fields["gas"] * fields["maxFeePerGas"])
        sent = self._signed(publication.digest, fields)
        self._journal.add_transaction(publication, sent)
        self._sent(endpoint, sent)
        return sent.nonce

    def _waiting(self, endpoint: Endpoint) -> list[list[Sent]]:
        """Return the transactions that are not mined at the head, grouped by nonce.

        One whose payload is gone was mined a day ago: where a reorg drops it, its nonce is filled.
        """
        mined = endpoint.transaction_count(self._signer.address, endpoint.head().reference)
        groups = _by_nonce(self._journal.transactions_from(mined))
        return [group for group in groups if all(each.raw for each in group)]

    def _resend_lost(self, endpoint: Endpoint, waiting: Iterable[Sequence[Sent]]) -> set[int]:
        """Return the nonces of which the endpoint knew no transaction, and took one again."""
        lost = set()
        for group in waiting:
            is_unknown = all(endpoint.transaction(each.hash) is None for each in group)
            if is_unknown and self._handed_over(endpoint, group[-1].raw):
                lost.add(group[-1].nonce)
        return lost

    def _fill_gap(self, endpoint: Endpoint, waiting: Sequence[Sequence[Sent]]) -> None:
        """Send an empty transaction where late ones wait for a nonce that nothing uses.

        Another program's transaction had the nonce, and a reorg or the pool dropped it. The
        payload itself must not take the nonce: its first transaction may still be mined.
        """
        if not waiting or not self._is_late(first := waiting[0][-1]):
            return
        nonce = endpoint.pending_transaction_count(self._signer.address)
        if nonce >= first.nonce:
            return
        text = f"nothing uses nonce {nonce}, for which {len(waiting)} wait: it is filled"
        log_event(LogEvent("nonce_filled", text, level=logging.WARNING))
        own = bytes.fromhex(self._signer.address[2:])
        try:
            call = Call(fields_of(first.raw)["chainId"], own, b"")
            fields = self._drafted(endpoint, call, nonce)
            self._handed_over(endpoint, self._signer.sign_transaction(fields))
        except (RefusedRequest, ConfigurationError) as error:
            text = f"nonce {nonce} is not filled: {error}"
            log_event(LogEvent("nonce_not_filled", text, level=logging.WARNING))

    def _is_taken(self, endpoint: Endpoint, begun: Sequence[Sent]) -> bool:
        """Tell whether a transaction that is none of the journal's used a nonce, and is final."""
        mine = [each for each in begun if each.nonce == begun[-1].nonce]
        if any(each.settlement is not None for each in mine):
            return False
        if (final := endpoint.tagged_header("finalized")) is None:
            return False
        try:
            used = endpoint.transaction_count(self._signer.address, final.reference)
        except StateUnavailable:
            return False
        return used > begun[-1].nonce and all(
            endpoint.transaction(each.hash) is None and endpoint.receipt(each.hash) is None
            for each in mine
        )

    def _is_late(self, sent: Sent) -> bool:
        return self._now_ns() - sent.sent_ns >= REPLACE_SECONDS * 10**9

    def _replaced(self, endpoint: Endpoint, late: Sent) -> bool:
        tip, maximum = transaction_fees(endpoint)
        tip, maximum = max(tip, raised(late.tip)), max(maximum, raised(late.maximum_fee))
        try:
            check_cost(late.gas * maximum, MAX_COST)
        except ConfigurationError as error:
            # The transaction may still be mined as it is.
            text = f"transaction of nonce {late.nonce} is not replaced: {error}"
            log_event(LogEvent("replacement_too_dear", text, level=logging.WARNING))
            return False
        fields = fields_of(late.raw) | {"maxPriorityFeePerGas": tip, "maxFeePerGas": maximum}
        sent = self._signed(late.digest, fields)
        self._journal.add_replacement(sent)
        try:
            self._sent(endpoint, sent)
        except RefusedRequest as error:
            # Most often the first transaction has just been mined.
            text = f"replacement of nonce {late.nonce} was refused: {error}"
            log_event(LogEvent("replacement_refused", text, level=logging.WARNING))
            return False
        return True

    def _sent(self, endpoint: Endpoint, sent: Sent) -> None:
        try:
            self._handed_over(endpoint, sent.raw)
        except RefusedRequest:
            # The endpoint accepted no transaction: a new nonce is free again.
            self._journal.remove_transaction(sent)
            raise

    def _handed_over(self, endpoint: Endpoint, raw: bytes) -> bool:
        """Send a transaction, and tell whether the endpoint took it as one that it did not know."""
        try:
            send_transaction(endpoint, SignedTransaction(raw, keccak256(raw)))
        except OutcomeUnknown as unknown:
            # The journal keeps the transaction, whose receipt is looked for.
            log_event(LogEvent("outcome_unknown", str(unknown), level=logging.WARNING))
            return False
        return True

    def _signed(self, digest: bytes, fields: dict[str, Any]) -> Sent:
        raw = self._signer.sign_transaction(fields)
        return Sent(
            hash=keccak256(raw),
            digest=digest,
            nonce=fields["nonce"],
            raw=raw,
            sent_ns=self._now_ns(),
            gas=fields["gas"],
            tip=fields["maxPriorityFeePerGas"],
            maximum_fee=fields["maxFeePerGas"],
        )

    def _drafted(self, endpoint: Endpoint, call: Call, nonce: int) -> dict[str, Any]:
        block = endpoint.head().reference
        gas = with_margin(estimate_gas(endpoint, call.to, call.data, self._signer.address, block))
        tip, maximum = transaction_fees(endpoint)
        check_cost(gas * maximum, MAX_COST)
        return {
            "type": 2,
            "chainId": call.chain_id,
            "nonce": nonce,
            "to": call.to,
            "value": 0,
            "data": call.data,
            "gas": gas,
            "maxPriorityFeePerGas": tip,
            "maxFeePerGas": maximum,
        }

    def _settled(self, endpoint: Endpoint, sent: Sequence[Sent]) -> Receipt | None:
        for each in reversed(sent):
            try:
                receipt = fetch_receipt(endpoint, each.hash)
                if receipt is None:
                    continue
                if not each.raw:
                    return receipt  # it was settled long ago
                answer = endpoint.receipt(each.hash)
            except RetryableChainError:
                continue  # a block that is just being replaced, or an endpoint that pauses
            subject = f"receipt of 0x{each.hash.hex()}"
            called = self._contracts.get(call_of(each.raw).to)
            paid = endpoint.parsed(subject, partial(settlement_of, receipt, called), answer)
            self._journal.settle(each, paid)
            return receipt
        return None

    def _take_back(self, endpoint: Endpoint) -> None:
        """Forget receipts of blocks that a reorg replaced."""
        head = endpoint.head().number
        for block in self._journal.blocks_from(max(0, head - _RECHECKED_BLOCKS)):
            header = endpoint.find_header(block.number)
            if header is None or header.hash != block.hash:
                self._journal.unsettle(block)


def is_reverted(sent: Sequence[Sent]) -> bool:
    """Return whether a publication's latest nonce was mined and reverted; nothing is published."""
    latest = [each.settlement for each in sent if each.nonce == sent[-1].nonce]
    return any(each is not None and not each.succeeded for each in latest)


def _by_nonce(sent: Iterable[Sent]) -> list[list[Sent]]:
    return [list(group) for _, group in groupby(sent, key=lambda each: each.nonce)]
