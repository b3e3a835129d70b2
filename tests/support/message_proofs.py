"""Proofs of messages on a small chain whose hashes, signatures and roots are real.

::

    proof_of(CHAIN, 2, 0, signed(100, 1))
    verify_message(proof, CHAIN.hash_of(2), RECORD)
"""

from __future__ import annotations

from chainkit.contracts.deployment import DeployedContract, DeploymentRecord
from chainkit.ethereum import header_bytes, inclusion_proofs, receipt_bytes, transaction_bytes
from chainkit.evidence.inclusion import TransactionProof
from chainkit.evidence.message_proof import MessageProof
from support.audit.audit_exports import GENESIS
from support.audit.identities import GROUP_MESSAGES, IDENTITY_UPDATES, NODE_REGISTRY
from support.chains.proved_chain import CHAIN_ID, ProvedChain


def _contract(name: str, address: bytes) -> DeployedContract:
    return DeployedContract(name, address, 1, bytes(32))


RECORD = DeploymentRecord(
    CHAIN_ID,
    GENESIS,
    _contract("GroupMessages", GROUP_MESSAGES),
    _contract("IdentityUpdates", IDENTITY_UPDATES),
    _contract("NodeRegistry", NODE_REGISTRY),
    _contract("OriginatorSequence", b"\x66" * 20),
    b"\x99" * 20,
)


def proof_of(chain: ProvedChain, number: int, index: int, envelope: bytes) -> MessageProof:
    """The proof of an envelope by a transaction of a block."""
    block = chain.block(number)
    receipts = [
        receipt_bytes(
            row,
            [log for log in block["logs"] if log["transaction_index"] == row["transaction_index"]],
        )
        for row in block["receipts"]
    ]
    _, transactions = inclusion_proofs(list(map(transaction_bytes, block["transactions"])), [index])
    _, outcomes = inclusion_proofs(receipts, [index])
    transaction_hash = block["transactions"][index]["transaction_hash"]
    proved = TransactionProof(number, index, transaction_hash, transactions[index], outcomes[index])
    return MessageProof("chainkit test", envelope, header_bytes(block["blocks"][0]), proved)
