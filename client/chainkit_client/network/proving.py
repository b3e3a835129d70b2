"""Proves an envelope to others: finds the transaction of the chain that proves the envelope.

All functions block; call them in a thread.
"""

from __future__ import annotations

from collections.abc import Callable

from chainkit import __version__
from chainkit.chain import LogFilter
from chainkit.chain.block_proof import read_proved_block
from chainkit.chain.log_ranges import logs_by_pieces
from chainkit.chain.transactions import fetch_receipt
from chainkit.errors import ConfigurationError, InconsistentAnswer
from chainkit.ethereum import inclusion_proofs
from chainkit.evidence.inclusion import TransactionProof
from chainkit.evidence.message_proof import (
    MessageProof,
    ProvedMessage,
    verify_message,
)
from chainkit.protocol.envelope import parse_originator_envelope, stated_place
from chainkit.protocol.events import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit.signatures import keccak256
from chainkit.text.hexadecimal import hex0x
from chainkit_client.network.chain import Chain

Advance = Callable[[int], None]
"""Takes the number of blocks that were searched since the last call."""


def prove(
    chain: Chain, envelope: bytes, advance: Advance = lambda blocks: None
) -> tuple[MessageProof, ProvedMessage]:
    """Return the proof of an envelope, and what it proves, verified as others will verify it.

    Raises ConfigurationError where the chain has no such node or payload, MalformedData for an
    envelope that proves nothing, and ChainError where the endpoint gives no clear answer.
    """
    originator_id, _ = stated_place(envelope)
    if originator_id in chain.originator_ids:
        transaction_hash = parse_originator_envelope(envelope).transaction_hash
    else:
        transaction_hash = _registration(chain, originator_id, advance)
    transaction, header = _proved(chain, transaction_hash)
    tool = f"chainkit {__version__}"
    proof = MessageProof(tool, envelope, header, transaction)
    return proof, verify_message(proof, keccak256(header), chain.record)


def _registration(chain: Chain, node_id: int, advance: Advance) -> bytes:
    """Return the hash of the transaction that registered a node."""
    registry = chain.node_registry
    wanted = LogFilter((registry.address,), (NODE_UPDATED_TOPIC,))
    head = chain.endpoint.head().number
    for blocks, logs in logs_by_pieces(chain.endpoint, registry.block, head, wanted):
        advance(blocks)
        for log in logs:
            if decode_node_updated(log).node_id == node_id:
                return log.transaction_hash
    subject = f"registry {hex0x(registry.address)}"
    raise ConfigurationError(subject, f"node {node_id}", "none up to the head")


def _proved(chain: Chain, transaction_hash: bytes) -> tuple[TransactionProof, bytes]:
    """Return the proof of a transaction, and the header of its block."""
    receipt = fetch_receipt(chain.endpoint, transaction_hash)
    subject = f"transaction {hex0x(transaction_hash)}"
    if receipt is None:
        raise ConfigurationError(subject, "one of the chain", "none: a reorg took it back")
    block = read_proved_block(chain.endpoint, receipt.block, chain.record.chain_id)
    hashes = list(map(keccak256, block.transactions))
    if transaction_hash not in hashes:
        raise InconsistentAnswer(subject, f"one of block {receipt.block.number}", "none")
    index = hashes.index(transaction_hash)
    _, transactions = inclusion_proofs(block.transactions, [index])
    _, receipts = inclusion_proofs(block.receipts, [index])
    place = receipt.block.number, index, transaction_hash
    return TransactionProof(*place, transactions[index], receipts[index]), block.header
