"""Commits and identity updates on their way to the contracts (XIP-49 §2.2.2, §2.2.4, §3.2.1)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from chainkit.chain.refusals import tells_of_impossible_transaction
from chainkit.chain.sending import RECEIPT_TIMEOUT_SECONDS
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import ContractInterface, shipped_interface
from chainkit.errors import RefusedRequest, TransactionFailed
from chainkit.protocol.envelope import unsigned_originator_envelope
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.service.refusals import InvalidRequest, NotNow, Refusal
from chainkit.types import HASH_LENGTH, Receipt, TopicKind
from chainkit_gateway.payer_account import PayerAccount
from chainkit_gateway.transactions import Call
from chainkit_gateway.types import Mined, Publication

_FUNCTIONS: Final = {
    TopicKind.GROUP_MESSAGE: ("GroupMessages", "addMessage"),
    TopicKind.IDENTITY_UPDATE: ("IdentityUpdates", "addIdentityUpdate"),
}
_POLL_SECONDS: Final = 0.25


class ChainPublisher:
    """Puts payloads on the chain; its methods wait for the chain, in the caller's thread."""

    def __init__(
        self,
        account: PayerAccount,
        record: DeploymentRecord,
        *,
        depth: int = 0,
        seconds: float = RECEIPT_TIMEOUT_SECONDS,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        """Take the paying account, the contracts, and how long to wait for a receipt.

        A payload counts as published once ``depth`` blocks lie on top of the payload's block.
        """
        self._account = account
        self._depth = depth
        self._chain_id = record.chain_id
        self._addresses = {
            TopicKind.GROUP_MESSAGE: record.group_messages.address,
            TopicKind.IDENTITY_UPDATE: record.identity_updates.address,
        }
        self._polls = round(seconds / _POLL_SECONDS)
        self._stopped = threading.Event()
        self._pause = pause or self._stopped.wait

    def publish(self, publication: Publication) -> Mined:
        """Put a payload on the chain, once, and return its place.

        Raises InvalidRequest or NotNow with the contract's reason where the chain refuses the
        payload, TransactionFailed where it is not mined in time, and as ``PayerAccount.send``.
        """
        contract, function = _FUNCTIONS[publication.kind]
        interface = shipped_interface(contract)
        identifier = publication.identifier.ljust(HASH_LENGTH, b"\0")
        data = interface.encode(function, identifier, publication.client_envelope)
        call = Call(self._chain_id, self._addresses[publication.kind], data)
        try:
            nonce = self._account.send(publication, call)
        except RefusedRequest as error:
            raise _reason(interface, error) or error from error
        receipt = self._receipt(publication.digest, nonce)
        if not receipt.succeeded:
            # The next try finds the reason without a cost, or publishes the payload.
            raise NotNow("chain", "the payload to be taken", "a revert", receipt.place)
        return self._mined(publication, receipt)

    def stop(self) -> None:
        """End all waits: the journal keeps the transactions."""
        self._stopped.set()

    def _receipt(self, digest: bytes, nonce: int) -> Receipt:
        for _ in range(self._polls):
            if self._stopped.is_set():
                raise TransactionFailed(f"transaction of nonce {nonce}", "a receipt", "the end")
            # Read again until the receipt is deep enough: a reorg may move it to another block.
            receipt = self._account.find_receipt(digest, nonce)
            if receipt is not None and self._is_deep(receipt):
                return receipt
            self._pause(_POLL_SECONDS)
        deep = f" at depth {self._depth}" if self._depth else ""
        expected = f"a receipt{deep} within {self._polls * _POLL_SECONDS:g} s"
        raise TransactionFailed(f"transaction of nonce {nonce}", expected, "none so far")

    def _is_deep(self, receipt: Receipt) -> bool:
        return not self._depth or self._account.depth(receipt) >= self._depth

    def _mined(self, publication: Publication, receipt: Receipt) -> Mined:
        address = self._addresses[publication.kind]
        for log in receipt.logs:
            if log.address == address:
                event = decode_payload_event(log)
                unsigned = unsigned_originator_envelope(event, receipt.block.timestamp)
                envelope = OriginatorEnvelope(unsigned_originator_envelope=unsigned)
                envelope.blockchain_proof.transaction_hash = receipt.transaction_hash
                return Mined(
                    receipt.transaction_hash,
                    event.sequence_id,
                    receipt.block.reference,
                    envelope.SerializeToString(),
                )
        got = f"{len(receipt.logs)} logs of others"
        raise TransactionFailed("transaction", "the log of its payload", got, receipt.place)


def _reason(interface: ContractInterface, error: RefusedRequest) -> Refusal | None:
    """Return the refusal of the contract or of the payload, None where the endpoint refused."""
    if error.data is None:
        if tells_of_impossible_transaction(str(error.got)):
            return InvalidRequest(interface.name, "a payload that fits a transaction", error.got)
        return None
    kind = InvalidRequest if interface.revert_name(error) == "PayloadSizeOutOfBounds" else NotNow
    words = interface.revert_words(error)
    return kind(interface.name, "the payload to be taken", words)
