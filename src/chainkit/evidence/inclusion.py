"""Transactions of a bundle, each with its receipt and with both inclusion proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from chainkit.documents.canonical import Record, line_bytes, parse_line
from chainkit.errors import MalformedData
from chainkit.ethereum import DecodedHeader, decode_call, decode_receipt, verify_inclusion
from chainkit.evidence.emission import MinedTransaction
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit.types import HASH_LENGTH, Log, Receipt

FIELDS: Final = (
    *("block_number", "receipt_proof", "transaction_hash", "transaction_index"),
    "transaction_proof",
)
"""The names in a proof's JSON."""
_MOST_NODES: Final = 64
"""A path has a node for each half byte of its key, which is the RLP of an index."""


@dataclass(frozen=True, slots=True)
class TransactionProof:
    """A transaction's place, and the nodes from both roots of its block down to it.

    The last node of each path holds the transaction, or the receipt, itself.
    """

    block_number: int
    transaction_index: int
    transaction_hash: bytes
    """32 bytes."""
    transaction: tuple[bytes, ...]
    """Encoded nodes under the header's transactions root."""
    receipt: tuple[bytes, ...]
    """Encoded nodes under the header's receipts root."""

    @property
    def place(self) -> tuple[int, int]:
        """Height and index: the order of the chain."""
        return self.block_number, self.transaction_index


def proof_content(proof: TransactionProof) -> dict[str, Any]:
    """Return a proof for JSON."""
    return {
        "block_number": proof.block_number,
        "transaction_index": proof.transaction_index,
        "transaction_hash": hex0x(proof.transaction_hash),
        "transaction_proof": list(map(hex0x, proof.transaction)),
        "receipt_proof": list(map(hex0x, proof.receipt)),
    }


def read_proof(fields: Record, subject: str) -> TransactionProof:
    """Read a proof's JSON, which has FIELDS. Nothing is proved. Raises MalformedData."""
    return TransactionProof(
        block_number=fields.integer("block_number"),
        transaction_index=fields.integer("transaction_index"),
        transaction_hash=fields.bytes("transaction_hash", HASH_LENGTH),
        transaction=_nodes(fields, "transaction_proof", subject),
        receipt=_nodes(fields, "receipt_proof", subject),
    )


def proof_line(proof: TransactionProof) -> bytes:
    """Serialize a proof as a line of the bundle's transactions."""
    return line_bytes(proof_content(proof))


def parse_proof(data: bytes, subject: str) -> TransactionProof:
    """Read a line of the bundle's transactions. Nothing is proved. Raises MalformedData."""
    return read_proof(Record(parse_line(data, subject), subject, FIELDS), subject)


def proved_transaction(proof: TransactionProof, block: DecodedHeader) -> MinedTransaction:
    """Return the transaction that a proof shows to be part of a proved block.

    The log index of each log counts within the transaction: only all receipts of the block would
    give the index within the block. Raises MalformedData where the roots of the header contradict
    the proof, Unprovable for a type that this version does not know.
    """
    subject = f"transaction {proof.transaction_index} of block {proof.block_number}"
    roots = ((block.transactions_root, proof.transaction), (block.receipts_root, proof.receipt))
    encoded, receipt = (_value(root, proof, path, subject) for root, path in roots)
    if (found := keccak256(encoded)) != proof.transaction_hash:
        raise MalformedData(subject, f"hash {hex0x(proof.transaction_hash)}", hex0x(found))
    call, outcome = decode_call(encoded), decode_receipt(receipt)
    reference = block.header.reference
    logs = tuple(
        Log(
            address=log.address,
            topics=log.topics,
            data=log.data,
            block_number=reference.number,
            block_hash=reference.hash,
            transaction_hash=proof.transaction_hash,
            transaction_index=proof.transaction_index,
            log_index=position,
        )
        for position, log in enumerate(outcome.logs)
    )
    return MinedTransaction(
        Receipt(proof.transaction_hash, outcome.succeeded, call.to, block.header, logs),
        call.input,
    )


def _value(root: bytes, proof: TransactionProof, path: Sequence[bytes], subject: str) -> bytes:
    try:
        return verify_inclusion(root, proof.transaction_index, path)
    except MalformedData as error:
        raise MalformedData(subject, error.expected, error.got, error.subject) from error


def _nodes(fields: Record, name: str, subject: str) -> tuple[bytes, ...]:
    elements = fields.elements(name)
    if len(elements) > _MOST_NODES:
        raise MalformedData(subject, f"{name}: up to {_MOST_NODES} nodes", len(elements))
    return tuple(element.bytes("value") for element in elements)
