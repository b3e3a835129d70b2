"""The proof of a message: one envelope, and one transaction of one block, whose hash is trusted.

An originator's envelope is proved by the transaction that entered the originator's key into the
registry: no entry's key ever changes (XIP-49 §3.1.1). An envelope of the chain is proved by the
transaction that posted its payload, whoever served it. All is in one file::

    {"envelope", "format", "header", "tool", "transaction"}

It tells who originated the envelope and when, who paid, and on which topic it stands. It cannot
tell who of a group wrote it, or what it says: that is encrypted for the members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_account import Account

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment, node_registry_of
from chainkit.documents.canonical import Record, check_form, page_bytes, parse_object
from chainkit.errors import ConfigurationError, MalformedData, MalformedEnvelope
from chainkit.ethereum import DecodedHeader, decode_header, verify_inclusion
from chainkit.evidence.emission import (
    EmittingContracts,
    MinedTransaction,
    posted_payloads,
    registry_entries,
)
from chainkit.evidence.inclusion import (
    FIELDS,
    TransactionProof,
    proof_content,
    proved_transaction,
    read_proof,
)
from chainkit.protocol.envelope import (
    ServedEnvelope,
    parse_originator_envelope,
    stated_place,
    unsigned_originator_envelope,
)
from chainkit.protocol.publish_rules.client_envelope import (
    ParsedClientEnvelope,
    parse_client_envelope,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused
from chainkit.protocol.received_envelope import read_received_publish
from chainkit.signatures import address_of
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockHeader, Node, Place

FORMAT: Final = 1
LARGEST_PROOF: Final = 2**25
"""Bytes: an envelope of 4 MiB, as hex digits, and the same payload twice within a transaction."""

_SUBJECT: Final = "message proof"
_FIELDS: Final = ("envelope", "format", "header", "tool", "transaction")


@dataclass(frozen=True, slots=True)
class MessageProof:
    """The content of a proof's file: claims of its author, until they are verified."""

    tool: str
    """Name and version of the tool that wrote the proof."""
    envelope: bytes
    """A serialized OriginatorEnvelope."""
    header: bytes
    """RLP of the header of the block that is trusted."""
    transaction: TransactionProof
    """The transaction of that block that registered the originator, or posted the payload."""


@dataclass(frozen=True, slots=True)
class ProvedMessage:
    """The facts that a proof shows, if the hash of its block is the chain's."""

    place: Place
    """Originator and sequence id."""
    originator_ns: int
    """Nanoseconds since 1970: the originator's clock, of the chain by ADR 45."""
    expires_at: int | None
    """Seconds since 1970, after which nodes may remove the envelope; None where it never
    expires."""
    client: ParsedClientEnvelope
    """The payload, its topic, and the header of the payload's MLS message."""
    payer: str | None
    """Checksummed address; None for a transaction that nobody signed."""
    originator: Node | None
    """The registry's entry from the transaction; None for a payload of the chain."""
    block: BlockHeader
    transaction_hash: bytes
    """32 bytes."""


def message_proof_bytes(proof: MessageProof) -> bytes:
    """Serialize a proof: the same one always gives the same bytes."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "tool": proof.tool,
        "envelope": hex0x(proof.envelope),
        "header": hex0x(proof.header),
        "transaction": proof_content(proof.transaction),
    }
    return page_bytes(content)


def parse_message_proof(data: bytes) -> MessageProof:
    """Read a proof's file; nothing is proved.

    Raises MalformedData unless the file has the form of ``message_proof_bytes``.
    """
    fields = Record(parse_object(data, _SUBJECT), _SUBJECT, _FIELDS)
    if fields.integer("format") != FORMAT:
        raise MalformedData(_SUBJECT, f"format {FORMAT}", fields.integer("format"))
    transaction = fields.record("transaction", *FIELDS)
    proof = MessageProof(
        tool=fields.text("tool"),
        envelope=fields.bytes("envelope"),
        header=fields.bytes("header"),
        transaction=read_proof(transaction, f"{_SUBJECT}, transaction"),
    )
    check_form(data, message_proof_bytes(proof), _SUBJECT)
    return proof


def verify_message(
    proof: MessageProof, trusted_hash: bytes, record: DeploymentRecord | FollowedDeployment
) -> ProvedMessage:
    """Prove a message from the hash (32 bytes) of one block; no socket is opened.

    Raises ConfigurationError where the hash is another block's, or the record names no registry of
    the originator, and MalformedData where the message does not follow from the block and from the
    contracts of the record.
    """
    header = decode_header(proof.header)
    block = header.header
    if block.hash != trusted_hash:
        # The error must not show the proof's own hash: somebody would paste it, and trust the
        # proof.
        expected = f"the hash of block {block.number}, on which the proof says that it rests"
        hint = f"take the hash of block {block.number} from a node or explorers of your choice"
        raise ConfigurationError("--trust", expected, hex0x(trusted_hash), hint)
    if proof.transaction.block_number != block.number:
        expected, got = f"one of block {block.number}", f"block {proof.transaction.block_number}"
        raise MalformedData("transaction", expected, got)
    transaction = proved_transaction(proof.transaction, header)
    try:
        served = parse_originator_envelope(proof.envelope)
    except MalformedEnvelope:
        # The envelope has no BlockchainProof: so its originator signed it.
        return _originated(proof, transaction, record)
    return _of_chain(served, proof.transaction, header, transaction, record)


def _originated(
    proof: MessageProof,
    transaction: MinedTransaction,
    record: DeploymentRecord | FollowedDeployment,
) -> ProvedMessage:
    node_id, _ = stated_place(proof.envelope)
    registry = node_registry_of(record).address
    entries = registry_entries(transaction, registry, node_id)
    if not entries:
        expected = f"the entry of node {node_id} in the registry {hex0x(registry)}"
        raise MalformedData("transaction", expected, "none")
    node = entries[-1]
    received, publish = read_received_publish(proof.envelope, node_id, node.signing_key)
    if publish is None or received.fault is not None:
        raise MalformedData("payload", "one that keeps the rules of a publish", received.fault)
    return ProvedMessage(
        place=(received.originator_id, received.sequence_id),
        originator_ns=received.originator_ns,
        expires_at=received.expires_at,
        client=publish.client,
        payer=address_of(publish.payer_key),
        originator=node,
        block=transaction.receipt.block,
        transaction_hash=transaction.receipt.transaction_hash,
    )


def _of_chain(
    served: ServedEnvelope,
    proof: TransactionProof,
    header: DecodedHeader,
    transaction: MinedTransaction,
    record: DeploymentRecord | FollowedDeployment,
) -> ProvedMessage:
    receipt = transaction.receipt
    posted = [
        unsigned_originator_envelope(event, receipt.block.timestamp)
        for event in posted_payloads(receipt, EmittingContracts.of(record))
    ]
    if served.unsigned_originator_envelope not in posted:
        expected = f"one that transaction {hex0x(receipt.transaction_hash)} posted"
        raise MalformedData("payload", expected, "another")
    return ProvedMessage(
        place=(served.originator_id, served.sequence_id),
        originator_ns=served.originator_ns,
        expires_at=None,
        client=_client(served),
        payer=_sender(proof, header),
        originator=None,
        block=receipt.block,
        transaction_hash=receipt.transaction_hash,
    )


def _client(served: ServedEnvelope) -> ParsedClientEnvelope:
    try:
        return parse_client_envelope(served.client_envelope)
    except PublishRefused as error:
        # Anyone may post any bytes.
        raise MalformedData("payload", "one that names its topic", error) from error


def _sender(proof: TransactionProof, header: DecodedHeader) -> str | None:
    """Return the sender of a proved transaction, who paid; None where it has no signature."""
    encoded = verify_inclusion(header.transactions_root, proof.transaction_index, proof.transaction)
    try:
        return str(Account.recover_transaction(encoded))
    except Exception:  # the library raises anything for types that it does not know
        return None
