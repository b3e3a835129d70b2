"""Node-0 envelopes and their proof: built by the operator, compared by auditor and council.

XIP-49 §3.2.1 makes the blockchain originator 0 (contracts that count for themselves have an id
each): no originator signs, and each node signs a BlockchainProof over what it read. Every honest
node builds the same unsigned bytes; only the node's signature differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedEnvelope
from chainkit.protocol import wire
from chainkit.protocol.chain_time import originator_ns
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.served_topic import is_named
from chainkit.protocol.strict import Deviation, NotStrict, check_strict
from chainkit.signatures import (
    BLOCKCHAIN_LABEL,
    SIGNATURE_LENGTH,
    SigningKey,
    keccak256,
    recover_public_key,
)
from chainkit.types import (
    BLOCKCHAIN_ORIGINATOR_ID,
    HASH_LENGTH,
    PayloadEvent,
    TopicKind,
)

_PAYLOAD_FIELD = {
    TopicKind.GROUP_MESSAGE: "group_message",
    TopicKind.IDENTITY_UPDATE: "identity_update",
}


class QuarantineReason(StrEnum):
    """Why a posted payload is kept and counted, but never served."""

    NOT_A_CLIENT_ENVELOPE = "not a ClientEnvelope"
    NOT_STRICT = "readers differ on these bytes"
    """Begins a reason that names the field and the deviation."""
    NO_AAD = "no aad"
    WRONG_ORIGINATOR = "target originator is not 0"
    ANOTHER_ORIGINATOR = "target originator is not the contract's"
    """As the one before, of a contract that posts under another originator id than 0."""
    WRONG_TOPIC = "target topic does not match"
    NO_PAYLOAD = "no payload"
    WRONG_PAYLOAD_KIND = "payload kind does not match topic"


@dataclass(frozen=True, slots=True)
class ServedEnvelope:
    """A decoded OriginatorEnvelope with a BlockchainProof, and its bytes as they came."""

    originator_id: int
    """0 for the blockchain; whatever the node wrote."""
    sequence_id: int
    """A uint64."""
    originator_ns: int
    """Nanoseconds since 1970."""
    client_envelope: bytes
    """The payload within the PayerEnvelope."""
    unsigned_originator_envelope: bytes
    """As received: what the node signed."""
    transaction_hash: bytes
    """32 bytes."""
    node_signature: bytes
    """65 bytes, R ‖ S ‖ V."""


def quarantine_reason(event: PayloadEvent) -> str | None:
    """Return why a posted payload must not be served, or None if it may (XIP-49 §3.3.2, §3.3.4).

    The reason is a QuarantineReason, or begins with its NOT_STRICT. Anyone may post any bytes. A
    payload may be served if all readers read it alike (ADR 54), if it is a ClientEnvelope that
    names the topic it was posted to, and the originator or none, and if its payload is of that
    topic's kind. None is 0, as today's clients write it whatever the contract's originator is.
    A group's topic may leave out the padding of its id (ADR 24).
    """
    if (reason := unread_reason(event.payload)) is not None:
        return reason
    envelope = envelopes_pb2.ClientEnvelope.FromString(event.payload)
    if not envelope.HasField("aad"):
        return QuarantineReason.NO_AAD
    aad = envelope.aad
    if aad.target_originator not in (BLOCKCHAIN_ORIGINATOR_ID, event.originator_id):
        is_ours = event.originator_id == BLOCKCHAIN_ORIGINATOR_ID
        return QuarantineReason.WRONG_ORIGINATOR if is_ours else QuarantineReason.ANOTHER_ORIGINATOR
    if not is_named(aad.target_topic, event.kind.topic(event.identifier)):
        return QuarantineReason.WRONG_TOPIC
    payload_field = envelope.WhichOneof("payload")
    if payload_field is None:
        return QuarantineReason.NO_PAYLOAD
    if payload_field != _PAYLOAD_FIELD[event.kind]:
        return QuarantineReason.WRONG_PAYLOAD_KIND
    return None


def unread_reason(payload: bytes) -> str | None:
    """Return why a payload cannot be read as a ClientEnvelope, as ``quarantine_reason`` does."""
    try:
        check_strict(payload, envelopes_pb2.ClientEnvelope)
    except NotStrict as error:
        if error.deviation is Deviation.BROKEN:
            return QuarantineReason.NOT_A_CLIENT_ENVELOPE
        return f"{QuarantineReason.NOT_STRICT}: {error.subject} has {error.deviation}"
    return None


def breaks_the_xip(reason: str) -> bool:
    """Return whether a node that serves a payload in spite of a reason breaks a rule of XIP-49.

    The rule about payloads that readers differ on is our own: a node of another make may serve such
    a payload.
    """
    return not reason.startswith(QuarantineReason.NOT_STRICT)


def are_servable(payloads: Iterable[bytes], topics: Iterable[bytes]) -> list[bool]:
    """Return for many payloads of originator 0 whether ``quarantine_reason`` would be None.

    ``topics`` are the topics of the events, a kind byte and an identifier each. For millions of
    payloads: the function checks only as much as is needed to exclude every reason.
    """
    fields = {int(kind): name for kind, name in _PAYLOAD_FIELD.items()}
    envelope = envelopes_pb2.ClientEnvelope()
    parse, payload_field = envelope.ParseFromString, envelope.WhichOneof
    found = []
    for payload, topic in zip(payloads, topics, strict=True):
        if unread_reason(payload) is not None:
            found.append(False)
            continue
        parse(payload)
        # Without an aad the topic is empty, and no event's topic is empty.
        aad = envelope.aad
        found.append(
            (aad.target_topic == topic or is_named(aad.target_topic, topic))
            and aad.target_originator == BLOCKCHAIN_ORIGINATOR_ID
            and payload_field("payload") == fields.get(topic[0])
        )
    return found


def unsigned_originator_envelope(event: PayloadEvent, block_timestamp: int) -> bytes:
    """Write a payload of the chain as UnsignedOriginatorEnvelope, in its one form (XIP-49 §3.2.1).

    ``block_timestamp`` is in seconds. The PayerEnvelope has no signature: the sender paid in gas.
    Raises MalformedEnvelope for a timestamp above chain_time.MAXIMUM_BLOCK_TIMESTAMP.
    """
    payer_envelope = wire.bytes_field(wire.CLIENT_TAG, event.payload)
    time_ns = originator_ns(block_timestamp, event.sequence_id)
    return b"".join(
        (
            wire.integer_field(wire.ORIGINATOR_TAG, event.originator_id),
            wire.integer_field(wire.SEQUENCE_TAG, event.sequence_id),
            wire.integer_field(wire.TIME_TAG, time_ns),
            wire.bytes_field(wire.PAYER_TAG, payer_envelope),
        )
    )


def blockchain_proof_digest(unsigned: bytes, transaction_hash: bytes) -> bytes:
    """Return the 32 bytes that a BlockchainProof signs.

    keccak256 of a label, the envelope's bytes and the transaction hash: it commits a node to both.
    The hash has a fixed length, so the concatenation is unambiguous.
    """
    return keccak256(BLOCKCHAIN_LABEL + unsigned + transaction_hash)


def sign_originator_envelope(unsigned: bytes, transaction_hash: bytes, key: SigningKey) -> bytes:
    """Write an OriginatorEnvelope with the BlockchainProof of a node's key (§3.2.1)."""
    signature = key.sign(blockchain_proof_digest(unsigned, transaction_hash))
    return originator_envelope(unsigned, transaction_hash, signature)


def originator_envelope(unsigned: bytes, transaction_hash: bytes, signature: bytes) -> bytes:
    """Write an OriginatorEnvelope with a BlockchainProof that was signed already (§3.2.1).

    Raises MalformedEnvelope for a hash that is not 32 bytes, or a signature that is not 65.
    """
    lengths = len(transaction_hash), len(signature)
    if lengths != (HASH_LENGTH, SIGNATURE_LENGTH):
        expected = f"a hash of {HASH_LENGTH} and a signature of {SIGNATURE_LENGTH} bytes"
        raise MalformedEnvelope("proof", expected, f"{lengths[0]} and {lengths[1]} bytes")
    return b"".join(
        (
            wire.bytes_field(wire.UNSIGNED_TAG, unsigned),
            wire.PROOF_HEAD,
            transaction_hash,
            wire.SIGNATURE_HEAD,
            signature,
        )
    )


def stated_place(data: bytes) -> tuple[int, int]:
    """Return the originator id and sequence id that an OriginatorEnvelope of any proof states.

    Raises MalformedEnvelope where the bytes do not parse. Nothing else is checked.
    """
    envelope = envelopes_pb2.OriginatorEnvelope()
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope()
    try:
        envelope.ParseFromString(data)
        unsigned.ParseFromString(envelope.unsigned_originator_envelope)
    except DecodeError as error:
        raise MalformedEnvelope("envelope", "an OriginatorEnvelope", error) from error
    return unsigned.originator_node_id, unsigned.originator_sequence_id


def parse_originator_envelope(data: bytes) -> ServedEnvelope:
    """Decode a served OriginatorEnvelope.

    Raises MalformedEnvelope where the bytes do not parse, have no BlockchainProof, or the
    transaction hash is not 32 bytes. The signature is not checked here.
    """
    envelope = envelopes_pb2.OriginatorEnvelope()
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope()
    payer = envelopes_pb2.PayerEnvelope()
    try:
        envelope.ParseFromString(data)
        unsigned.ParseFromString(envelope.unsigned_originator_envelope)
        payer.ParseFromString(unsigned.payer_envelope)
    except DecodeError as error:
        raise MalformedEnvelope("envelope", "an OriginatorEnvelope", error) from error
    subject = f"envelope {unsigned.originator_sequence_id}"
    if (proof := envelope.WhichOneof("proof")) != "blockchain_proof":
        raise MalformedEnvelope(subject, "a BlockchainProof", proof or "no proof")
    transaction_hash = envelope.blockchain_proof.transaction_hash
    if len(transaction_hash) != HASH_LENGTH:
        length = f"{len(transaction_hash)} bytes"
        raise MalformedEnvelope(subject, f"a transaction hash of {HASH_LENGTH} bytes", length)
    return ServedEnvelope(
        originator_id=unsigned.originator_node_id,
        sequence_id=unsigned.originator_sequence_id,
        originator_ns=unsigned.originator_ns,
        client_envelope=payer.unsigned_client_envelope,
        unsigned_originator_envelope=envelope.unsigned_originator_envelope,
        transaction_hash=transaction_hash,
        node_signature=envelope.blockchain_proof.node_signature.bytes,
    )


def is_in_one_form(data: bytes, served: ServedEnvelope) -> bool:
    """Return whether an OriginatorEnvelope has the form in which ``originator_envelope`` writes it.

    The signature covers the unsigned envelope and the transaction hash; nothing covers the bytes of
    the message around them. A signature of another length than 65 bytes is wrong in any form.
    """
    signature = served.node_signature
    if len(signature) != SIGNATURE_LENGTH:
        return True
    unsigned = served.unsigned_originator_envelope
    return data == originator_envelope(unsigned, served.transaction_hash, signature)


def recover_node_key(served: ServedEnvelope) -> bytes:
    """Return the 65-byte public key of the node that vouched for an envelope.

    Raises InvalidSignature where the signature is malformed or recovers to nobody.
    """
    digest = blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)
    return recover_public_key(served.node_signature, digest)
