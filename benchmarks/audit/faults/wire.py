"""Envelopes field by field (XIP-49 §3.2.1), in the form that protobuf has, or in any other."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.audit.exports.columns import varint
from benchmarks.audit.exports.signing import signed_digest
from chainkit.signatures import SigningKey


@dataclass(frozen=True, slots=True)
class Payload:
    """One payload as the chain holds it."""

    sequence_id: int
    originator_ns: int
    client_envelope: bytes
    transaction_hash: bytes
    """32 bytes."""


def number(tag: int, value: int) -> bytes:
    """Write a field that holds a number."""
    return varint(tag << 3) + varint(value)


def data(tag: int, content: bytes) -> bytes:
    """Write a field that holds bytes or a message."""
    return varint(tag << 3 | 2) + varint(len(content)) + content


def payer_envelope(payload: Payload) -> bytes:
    """Write a PayerEnvelope without a signature."""
    return data(1, payload.client_envelope)


def unsigned_fields(payload: Payload, originator_id: int = 0) -> list[bytes]:
    """Return the fields of an UnsignedOriginatorEnvelope in their order, without those that are 0.

    The sequence is the first of them, but for another originator's and for sequence 0.
    """
    fields = [
        number(1, originator_id) if originator_id else b"",
        number(2, payload.sequence_id) if payload.sequence_id else b"",
        number(3, payload.originator_ns),
        data(4, payer_envelope(payload)),
    ]
    return [field for field in fields if field]


def unsigned(payload: Payload, originator_id: int = 0) -> bytes:
    """Write an UnsignedOriginatorEnvelope."""
    return b"".join(unsigned_fields(payload, originator_id))


def proof(transaction_hash: bytes, signature: bytes) -> bytes:
    """Write a BlockchainProof."""
    return data(1, transaction_hash) + data(2, data(1, signature))


def envelope(unsigned_bytes: bytes, transaction_hash: bytes, signature: bytes) -> bytes:
    """Write an OriginatorEnvelope with a BlockchainProof."""
    return data(1, unsigned_bytes) + data(3, proof(transaction_hash, signature))


def signature_of(key: SigningKey, unsigned_bytes: bytes, transaction_hash: bytes) -> bytes:
    """Sign as a node does that wants to be believed."""
    return key.sign(signed_digest(unsigned_bytes, transaction_hash))


def signed(key: SigningKey, unsigned_bytes: bytes, transaction_hash: bytes) -> bytes:
    """Write an OriginatorEnvelope that its node vouches for, whatever it says."""
    signature = signature_of(key, unsigned_bytes, transaction_hash)
    return envelope(unsigned_bytes, transaction_hash, signature)
