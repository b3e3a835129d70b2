"""Payer envelopes: a payer's promise to pay for what a client wrote (XIP-49 §3.1.2, §3.3.1).

A payer signs in one of two forms, and field 3 shows which. Without field 3, as XIP-49 has it, the
digest is over the label ``payer|`` and the ClientEnvelope's bytes. With field 3, as in XMTP's
public schema, ``target|`` and the target's id (four bytes, big-endian) precede the label, so that
no other originator can take the envelope for one of its own. The two never have one digest: they
begin with other bytes. A signature that is read in the other form recovers to a key that nobody
holds.

Neither form binds field 4, the retention: today's nodes could not verify a digest with it. So our
payers sign it a second time (ADR 82): over the label ``retention|``, the days (four bytes,
big-endian, 0 for the default) and the first digest. Today's nodes keep that signature unread. Where
it is missing, as from today's payers, an originator can put other days in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol import wire
from chainkit.protocol.proto import envelopes_pb2
from chainkit.protocol.strict import check_strict
from chainkit.signatures import (
    PAYER_LABEL,
    RETENTION_LABEL,
    TARGET_LABEL,
    SigningKey,
    keccak256,
    recover_public_key,
)

MAXIMUM_CLIENT_ENVELOPE_LENGTH: Final = 4 * 1024 * 1024
"""Bytes: a message with a picture in it, or the welcome to a group of hundreds of installations."""

MAXIMUM_PAYER_ENVELOPE_LENGTH: Final = MAXIMUM_CLIENT_ENVELOPE_LENGTH + 1024
"""Bytes: the signature and the other fields take less than a hundred."""

MOST_PUBLISHED_LENGTH: Final = 4_000_000
"""Bytes of a ClientEnvelope that a node or a gateway takes; longer ones of others are read.

gRPC's readers take messages of 4,194,304 bytes unless they are set otherwise. One envelope with all
that payer, originator and a frame add stays below that, and leaves room for what is added later.
"""

MOST_PAID_LENGTH: Final = MOST_PUBLISHED_LENGTH + 1024
"""Bytes of a PayerEnvelope that a node takes."""

_UINT32_MAXIMUM: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class ParsedPayerEnvelope:
    """A decoded PayerEnvelope, with the client's bytes as they came."""

    client_envelope: bytes
    """A serialized ClientEnvelope, if the client was honest: what the payer signed."""
    target_originator: int | None
    """Node id that the payer's signature binds; None in XIP-49's form."""
    retention_days: int | None
    """The payer's requested retention (XIP-69), not covered by ``signature``; None where there is
    none."""
    signature: bytes
    """R ‖ S ‖ V, 65 bytes if the payer was honest."""
    retention_signature: bytes = b""
    """As long; empty where the payer does not sign the retention."""

    def digest(self) -> bytes:
        """Return the 32 bytes that the payer signed."""
        return payer_digest(self.client_envelope, self.target_originator)


def payer_digest(client_envelope: bytes, target_originator: int | None = None) -> bytes:
    """Return the 32 bytes that a payer signs; see above. The target is a uint32 above 0."""
    target = b""
    if target_originator is not None:
        target = TARGET_LABEL + target_originator.to_bytes(4, "big")
    return keccak256(target + PAYER_LABEL + client_envelope)


def retention_digest(digest: bytes, retention_days: int | None) -> bytes:
    """Return the 32 bytes that a payer signs for the retention, from those of ``payer_digest``."""
    days = (retention_days or 0).to_bytes(4, "big")
    return keccak256(RETENTION_LABEL + days + digest)


def sign_payer_envelope(
    client_envelope: bytes,
    target_originator: int,
    key: SigningKey,
    retention_days: int | None = None,
) -> bytes:
    """Write a PayerEnvelope in today's form, which binds target and retention (XIP-49 §3.3.1).

    ``retention_days`` is a uint32 above 0, if the payer requests a retention. Raises
    MalformedEnvelope for a number outside of its field, or a ClientEnvelope that is too large.
    """
    _check_length("client envelope", client_envelope, MAXIMUM_CLIENT_ENVELOPE_LENGTH)
    _check_number("target originator", target_originator)
    if retention_days is not None:
        _check_number("retention", retention_days)
    digest = payer_digest(client_envelope, target_originator)
    return b"".join(
        (
            wire.bytes_field(wire.CLIENT_TAG, client_envelope),
            wire.SIGNATURE_HEAD,
            key.sign(digest),
            wire.integer_field(wire.TARGET_TAG, target_originator),
            wire.integer_field(wire.RETENTION_TAG, retention_days or 0),
            wire.RETENTION_SIGNATURE_HEAD,
            key.sign(retention_digest(digest, retention_days)),
        )
    )


def parse_payer_envelope(data: bytes) -> ParsedPayerEnvelope:
    """Decode a PayerEnvelope. The signature is not checked here.

    Raises MalformedEnvelope where it is too large, and NotStrict.
    """
    _check_length("payer envelope", data, MAXIMUM_PAYER_ENVELOPE_LENGTH)
    check_strict(data, envelopes_pb2.PayerEnvelope)
    payer = envelopes_pb2.PayerEnvelope.FromString(data)
    client_envelope = payer.unsigned_client_envelope
    _check_length("client envelope", client_envelope, MAXIMUM_CLIENT_ENVELOPE_LENGTH)
    return ParsedPayerEnvelope(
        client_envelope=client_envelope,
        target_originator=payer.target_originator or None,
        retention_days=payer.message_retention_days or None,
        signature=payer.payer_signature.bytes,
        retention_signature=payer.retention_signature,
    )


def recover_payer(parsed: ParsedPayerEnvelope, digest: bytes | None = None) -> bytes:
    """Return the payer's 65-byte public key (XIP-49 §3.3.4, first rule of a publish).

    ``digest`` is the envelope's, where the caller has it. Raises InvalidSignature where the
    signature is malformed or recovers to nobody.
    """
    return recover_public_key(parsed.signature, parsed.digest() if digest is None else digest)


def is_retention_forged(parsed: ParsedPayerEnvelope, digest: bytes, payer_key: bytes) -> bool:
    """Return whether there is a signature of the retention that is not the payer's."""
    signature = parsed.retention_signature
    if not signature:
        return False
    try:
        signer = recover_public_key(signature, retention_digest(digest, parsed.retention_days))
    except InvalidSignature:
        return True
    return signer != payer_key


def _check_length(subject: str, data: bytes, maximum: int) -> None:
    if len(data) > maximum:
        raise MalformedEnvelope(subject, f"at most {maximum} bytes", f"{len(data)} bytes")


def _check_number(subject: str, number: int) -> None:
    if not 0 < number <= _UINT32_MAXIMUM:
        raise MalformedEnvelope(subject, f"an integer from 1 to {_UINT32_MAXIMUM}", number)
