"""Commits and identity updates on their way to the contracts (XIP-49 §2.2.2, §2.2.4, §3.2.1).

One account pays. Its nonces are given out one after the other under a lock, and each signed
transaction is journalled before it is sent: after a kill it is sent again as it is, and the chain
takes it once. So is one that a reorg dropped: without it, all later nonces would wait for ever.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from chainkit.chain import Endpoint, EndpointPool
from chainkit.chain.sending import (
    SignedTransaction,
    check_cost,
    send_transaction,
    transaction_fees,
    wait_for_receipt,
)
from chainkit.chain.transactions import estimate_gas
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.council.signing.key import KeySigner
from chainkit.errors import RefusedRequest, TransactionFailed
from chainkit.protocol.events import decode_payload_event
from chainkit.signatures import keccak256
from chainkit.text.ether import MAX_COST
from chainkit.types import HASH_LENGTH, Receipt, TopicKind
from chainkit_gateway.journal import Journal
from chainkit_gateway.types import Publication

_FUNCTIONS: Final = {
    TopicKind.GROUP_MESSAGE: ("GroupMessages", "addMessage"),
    TopicKind.IDENTITY_UPDATE: ("IdentityUpdates", "addIdentityUpdate"),
}


@dataclass(frozen=True, slots=True)
class Mined:
    """Where a payload stands on the chain."""

    transaction_hash: bytes
    """32 bytes."""
    sequence_id: int
    """Sequence id of the chain's originator."""


class ChainPublisher:
    """Sends payloads; its methods wait for the chain, in the caller's thread."""

    def __init__(
        self, pool: EndpointPool, record: DeploymentRecord, signer: KeySigner, journal: Journal
    ) -> None:
        """Take the chain, its contracts, who pays, and where transactions are journalled."""
        self._pool = pool
        self._record = record
        self._signer = signer
        self._journal = journal
        self._addresses = {
            TopicKind.GROUP_MESSAGE: record.group_messages.address,
            TopicKind.IDENTITY_UPDATE: record.identity_updates.address,
        }
        self._lock = threading.Lock()

    def publish(self, publication: Publication) -> Mined:
        """Put a payload on the chain, once, and return where it stands.

        Raises RefusedRequest with the contract's reason where the chain refuses it,
        TransactionFailed where it reverted or is not mined in time, and what endpoints raise.
        """
        endpoint = self._pool.choose()
        signed = self._sent(endpoint, publication)
        receipt = wait_for_receipt(endpoint, signed.hash)
        if not receipt.succeeded:
            subject = f"transaction 0x{signed.hash.hex()}"
            raise TransactionFailed(subject, "status 1", "a revert", receipt.place)
        return Mined(signed.hash, self._sequence_id(publication, receipt))

    def resend_lost(self) -> int:
        """Send transactions again that were sent and are gone; return how many.

        Raises what endpoints raise.
        """
        endpoint = self._pool.choose()
        with self._lock:
            return self._resend_lost(endpoint)

    def _resend_lost(self, endpoint: Endpoint) -> int:
        mined = endpoint.transaction_count(self._signer.address, endpoint.head().reference)
        count = 0
        for begun in self._journal.transactions_from(mined):
            if begun.raw is None or begun.transaction_hash is None:
                continue
            if endpoint.transaction(begun.transaction_hash) is None:
                send_transaction(endpoint, SignedTransaction(begun.raw, begun.transaction_hash))
                count += 1
        return count

    def _sequence_id(self, publication: Publication, receipt: Receipt) -> int:
        address = self._addresses[publication.kind]
        for log in receipt.logs:
            if log.address == address:
                return decode_payload_event(log).sequence_id
        got = f"{len(receipt.logs)} logs of others"
        raise TransactionFailed("transaction", "the log of its payload", got, receipt.place)

    def _sent(self, endpoint: Endpoint, publication: Publication) -> SignedTransaction:
        with self._lock:
            self._resend_lost(endpoint)
            begun = self._journal.find(publication.digest)
            if begun is not None and begun.raw is not None and begun.transaction_hash is not None:
                signed = SignedTransaction(begun.raw, begun.transaction_hash)
                send_transaction(endpoint, signed)
                return signed
            fields = self._drafted(endpoint, publication)
            raw = self._signer.sign_transaction(fields)
            signed = SignedTransaction(raw, keccak256(raw))
            digest, nonce = publication.digest, fields["nonce"]
            self._journal.begin_at_chain(digest, time.time_ns(), nonce, signed.hash, raw)
            try:
                send_transaction(endpoint, signed)
            except RefusedRequest:
                # It was not accepted, and its nonce is free again.
                self._journal.forget(digest)
                raise
            return signed

    def _drafted(self, endpoint: Endpoint, publication: Publication) -> dict[str, Any]:
        contract, function = _FUNCTIONS[publication.kind]
        identifier = publication.identifier.ljust(HASH_LENGTH, b"\0")
        payload = publication.client_envelope
        data = shipped_interface(contract).encode(function, identifier, payload)
        to = self._addresses[publication.kind]
        block = endpoint.head().reference
        gas = estimate_gas(endpoint, to, data, self._signer.address, block)
        gas += gas // 4
        tip, maximum = transaction_fees(endpoint)
        check_cost(gas * maximum, MAX_COST)
        return {
            "type": 2,
            "chainId": self._record.chain_id,
            "nonce": self._next_nonce(endpoint),
            "to": to,
            "value": 0,
            "data": data,
            "gas": gas,
            "maxPriorityFeePerGas": tip,
            "maxFeePerGas": maximum,
        }

    def _next_nonce(self, endpoint: Endpoint) -> int:
        on_chain = endpoint.pending_transaction_count(self._signer.address)
        return max(on_chain, self._journal.next_nonce())
