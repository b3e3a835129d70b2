"""The node's part of an envelope: the signature of its BlockchainProof (XIP-49 §3.2.1)."""

from __future__ import annotations

import numpy as np

from benchmarks.audit.exports.batch import SIGNATURE_BYTES, Batch, Heads, random_signatures
from benchmarks.audit.exports.columns import Bytes
from benchmarks.audit.exports.shape import Shape, key_of
from chainkit.signatures import BLOCKCHAIN_LABEL, SigningKey, keccak256


def signatures(shape: Shape, batch: Batch, part: Heads, node_id: int) -> Bytes:
    """Return a node's signatures over some rows: true ones, or random bytes if none are wanted."""
    if shape.is_signed:
        return _true_signatures(part, batch.transaction_hashes[part.rows], key_of(node_id))
    rng = np.random.default_rng((shape.seed, batch.blocks.first, part.rows.start, node_id))
    return random_signatures(rng, len(part.bytes))


def signed_digest(unsigned: bytes, transaction_hash: bytes) -> bytes:
    """Return the 32 bytes that a BlockchainProof signs."""
    return keccak256(BLOCKCHAIN_LABEL + unsigned + transaction_hash)


def _true_signatures(part: Heads, transaction_hashes: Bytes, key: SigningKey) -> Bytes:
    unsigned = np.ascontiguousarray(part.bytes[:, part.unsigned])
    made = b"".join(
        key.sign(signed_digest(row.tobytes(), transaction_hash.tobytes()))
        for row, transaction_hash in zip(unsigned, transaction_hashes, strict=True)
    )
    return np.frombuffer(made, np.uint8).reshape(len(unsigned), SIGNATURE_BYTES)
