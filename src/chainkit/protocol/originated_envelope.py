"""Envelopes that a node originates: one sequence and one signature each (XIP-49 §3.2.1, §3.2.2).

The digest is over the label ``originator|`` and the bytes of the UnsignedOriginatorEnvelope, which
contains the PayerEnvelope as it came: nothing is parsed and written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedEnvelope
from chainkit.protocol import wire
from chainkit.protocol.payer_envelope import MAXIMUM_PAYER_ENVELOPE_LENGTH
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.strict import check_strict
from chainkit.signatures import (
    ORIGINATOR_LABEL,
    SigningKey,
    keccak256,
    recover_public_key,
)

MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH: Final = MAXIMUM_PAYER_ENVELOPE_LENGTH + 1024
"""Bytes: the numbers and the signature take less than two hundred."""

_MAXIMUMS: Final = {
    "originator id": 2**32 - 1,
    "sequence id": 2**64 - 1,
    "originator_ns": 2**63 - 1,
    "expiry": 2**64 - 1,
}


@dataclass(frozen=True, slots=True)
class OriginatedEnvelope:
    """An UnsignedOriginatorEnvelope: a payload, and its originator's statements."""

    originator_id: int
    """The node's id in the registry: a uint32, never 0, which is the chain's."""
    sequence_id: int
    """From 1, growing by 1 with each envelope of the node; a uint64."""
    originator_ns: int
    """Nanoseconds since 1970, by the node's clock."""
    payer_envelope: bytes
    """A serialized PayerEnvelope as the payer sent it."""
    expiry_unixtime: int | None = None
    """Seconds since 1970 (XIP-69); None where the envelope never expires."""


@dataclass(frozen=True, slots=True)
class ParsedOriginatedEnvelope:
    """A decoded OriginatorEnvelope with a node's signature, and its bytes as they came."""

    envelope: OriginatedEnvelope
    unsigned_originator_envelope: bytes
    """As received: what the node signed."""
    signature: bytes
    """R ‖ S ‖ V, 65 bytes if the node was honest."""


def unsigned_originated(envelope: OriginatedEnvelope) -> bytes:
    """Write an UnsignedOriginatorEnvelope, in its one form (XIP-49 §3.2.1).

    Raises MalformedEnvelope for a number outside of its field, for 0 as an originator or a sequence
    id, and for a PayerEnvelope that is empty or too large.
    """
    _check_number("originator id", envelope.originator_id, 1)
    _check_number("sequence id", envelope.sequence_id, 1)
    _check_number("originator_ns", envelope.originator_ns, 0)
    if envelope.expiry_unixtime is not None:
        _check_number("expiry", envelope.expiry_unixtime, 1)
    length = len(envelope.payer_envelope)
    if not 0 < length <= MAXIMUM_PAYER_ENVELOPE_LENGTH:
        expected = f"1 to {MAXIMUM_PAYER_ENVELOPE_LENGTH} bytes"
        raise MalformedEnvelope("payer envelope", expected, f"{length} bytes")
    return b"".join(
        (
            wire.integer_field(wire.ORIGINATOR_TAG, envelope.originator_id),
            wire.integer_field(wire.SEQUENCE_TAG, envelope.sequence_id),
            wire.integer_field(wire.TIME_TAG, envelope.originator_ns),
            wire.bytes_field(wire.PAYER_TAG, envelope.payer_envelope),
            wire.integer_field(wire.EXPIRY_TAG, envelope.expiry_unixtime or 0),
        )
    )


def originator_digest(unsigned: bytes) -> bytes:
    """Return the 32 bytes that an originator signs."""
    return keccak256(ORIGINATOR_LABEL + unsigned)


def sign_originated(unsigned: bytes, key: SigningKey) -> bytes:
    """Write an OriginatorEnvelope with the originator's signature (XIP-49 §3.2.1)."""
    return b"".join(
        (
            wire.bytes_field(wire.UNSIGNED_TAG, unsigned),
            wire.SIGNATURE_HEAD,
            key.sign(originator_digest(unsigned)),
        )
    )


def parse_originated(data: bytes) -> ParsedOriginatedEnvelope:
    """Decode an OriginatorEnvelope that a node signed as its originator.

    Raises MalformedEnvelope where it is too large, or has another proof, and NotStrict where
    readers differ on it. The signature and the node's statements are not checked here.
    """
    if len(data) > MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH:
        expected = f"at most {MAXIMUM_ORIGINATOR_ENVELOPE_LENGTH} bytes"
        raise MalformedEnvelope("envelope", expected, f"{len(data)} bytes")
    check_strict(data, envelopes_pb2.OriginatorEnvelope)
    signed = envelopes_pb2.OriginatorEnvelope.FromString(data)
    check_strict(signed.unsigned_originator_envelope, envelopes_pb2.UnsignedOriginatorEnvelope)
    unsigned = envelopes_pb2.UnsignedOriginatorEnvelope.FromString(
        signed.unsigned_originator_envelope
    )
    subject = (
        f"envelope {unsigned.originator_sequence_id} of originator {unsigned.originator_node_id}"
    )
    if (proof := signed.WhichOneof("proof")) != "originator_signature":
        raise MalformedEnvelope(subject, "an originator's signature", proof or "no proof")
    return ParsedOriginatedEnvelope(
        OriginatedEnvelope(
            originator_id=unsigned.originator_node_id,
            sequence_id=unsigned.originator_sequence_id,
            originator_ns=unsigned.originator_ns,
            payer_envelope=unsigned.payer_envelope,
            expiry_unixtime=unsigned.expiry_unixtime or None,
        ),
        unsigned_originator_envelope=signed.unsigned_originator_envelope,
        signature=signed.originator_signature.bytes,
    )


def recover_originator(parsed: ParsedOriginatedEnvelope) -> bytes:
    """Return the 65-byte public key of the node that originated an envelope (XIP-49 §3.2.1).

    Raises InvalidSignature where the signature is malformed or recovers to nobody.
    """
    digest = originator_digest(parsed.unsigned_originator_envelope)
    return recover_public_key(parsed.signature, digest)


def _check_number(subject: str, number: int, minimum: int) -> None:
    maximum = _MAXIMUMS[subject]
    if not minimum <= number <= maximum:
        raise MalformedEnvelope(subject, f"an integer from {minimum} to {maximum}", number)
