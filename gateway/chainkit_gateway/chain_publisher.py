"""Commits and identity updates on their way to the contracts (XIP-49 §2.2.2, §2.2.4, §3.2.1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from chainkit.chain.refusals import tells_of_impossible_transaction
from chainkit.chain.sending import RECEIPT_TIMEOUT_SECONDS
from chainkit.contracts.posting import posting_calldata, posting_refusal
from chainkit.errors import MalformedData, RefusedRequest, TransactionFailed
from chainkit.protocol.envelope import unsigned_originator_envelope
from chainkit.protocol.events import decode_payload_event
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.protocol.proto.envelopes_pb2 import OriginatorEnvelope
from chainkit.service.refusals import InvalidRequest, NotNow, Refusal
from chainkit.types import Receipt, TopicKind
from chainkit_gateway.payer_account import PayerAccount
from chainkit_gateway.transactions import Call
from chainkit_gateway.types import Mined, Publication

_POLL_SECONDS: Final = 0.25


class ChainPublisher:
    """Puts payloads on the chain; its methods wait for the chain, in the caller's thread."""

    def __init__(
        self,
        account: PayerAccount,
        chain_id: int,
        contracts: Mapping[TopicKind, PayloadContract],
        *,
        depth: int = 0,
        seconds: float = RECEIPT_TIMEOUT_SECONDS,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        """Take the paying account, the chain's contracts, and how long to wait for a receipt.

        A payload counts as published once ``depth`` blocks lie on top of the payload's block.
        """
        self._account = account
        self._depth = depth
        self._chain_id = chain_id
        self._contracts = contracts
        self._polls = round(seconds / _POLL_SECONDS)
        self._stopped = threading.Event()
        self._pause = pause or self._stopped.wait

    def publish(self, publication: Publication) -> Mined:
        """Put a payload on the chain, once, and return its place.

        Raises InvalidRequest or NotNow with the contract's reason where the chain refuses the
        payload, InvalidRequest for an id of a group that the contract has no room for,
        TransactionFailed where it is not mined in time, and as ``PayerAccount.send``.
        """
        contract = self._contracts[publication.kind]
        try:
            data = posting_calldata(contract, publication.identifier, publication.client_envelope)
        except MalformedData as error:
            raise InvalidRequest(error.subject, error.expected, error.got) from error
        call = Call(self._chain_id, contract.address, data)
        try:
            nonce = self._account.send(publication, call)
        except RefusedRequest as error:
            raise _reason(contract, error) or error from error
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
        contract = self._contracts[publication.kind]
        for log in receipt.logs:
            if log.address == contract.address:
                event = decode_payload_event(log, contract)
                unsigned = unsigned_originator_envelope(event, receipt.block.timestamp)
                envelope = OriginatorEnvelope(unsigned_originator_envelope=unsigned)
                envelope.blockchain_proof.transaction_hash = receipt.transaction_hash
                return Mined(
                    receipt.transaction_hash,
                    event.sequence_id,
                    receipt.block.reference,
                    envelope.SerializeToString(),
                    event.originator_id,
                )
        got = f"{len(receipt.logs)} logs of others"
        raise TransactionFailed("transaction", "the log of its payload", got, receipt.place)


def _reason(contract: PayloadContract, error: RefusedRequest) -> Refusal | None:
    """Return the refusal of the contract or of the payload, None where the endpoint refused."""
    if error.data is None:
        if tells_of_impossible_transaction(str(error.got)):
            return InvalidRequest(contract.name, "a payload that fits a transaction", error.got)
        return None
    refusal = posting_refusal(contract, error)
    kind = InvalidRequest if refusal.is_for_good else NotNow
    return kind(contract.name, "the payload to be taken", refusal.words)
