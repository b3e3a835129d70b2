"""Checks an originator's envelope for its readers: peers, clients and the council (XIP-49 §3.3.4).

Bytes that the originator did not sign show nothing about it, and are refused. Bytes that it signed
are kept, also where they break a rule: then they are evidence, and ``fault`` names the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chainkit.errors import InvalidSignature, MalformedEnvelope
from chainkit.protocol import wire
from chainkit.protocol.charges import NO_CHARGE, Charge, charge_of
from chainkit.protocol.originated_envelope import (
    ParsedOriginatedEnvelope,
    originator_digest,
    parse_originated,
)
from chainkit.protocol.publish_rules.client_envelope import Destination
from chainkit.protocol.publish_rules.judgement import (
    PublishRequest,
    check_payload,
    check_target,
    read_publish,
)
from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason, refused
from chainkit.signatures import recover_public_key
from chainkit.types import NANOSECONDS_PER_SECOND, Cursor

MOST_SECONDS_AHEAD: Final = 300
"""How far an envelope's time may lie ahead of a clock (XIP-49 §3.2.7)."""

LEAST_RETENTION_SECONDS: Final = 24 * 60 * 60
"""No payload expires sooner after its time (XIP-69)."""

NO_TOPIC: Final = b""
"""The topic of an envelope whose payload breaks a rule: no reader can ask for it."""

_MOST_SEQUENCE_ID: Final = 2**63 - 1
_AHEAD_NS: Final = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class ReceivedEnvelope:
    """An envelope that its originator signed."""

    originator_id: int
    sequence_id: int
    """1 to 2^63 - 1."""
    originator_ns: int
    """Nanoseconds since 1970, by the originator's clock."""
    expires_at: int | None
    """Seconds since 1970; None where the envelope never expires."""
    topic: bytes
    """NO_TOPIC where the payload breaks a rule."""
    depends_on: Mapping[int, int]
    """Originator id to the highest sequence id of the topic that the client had seen; no zeros."""
    envelope: bytes
    """The OriginatorEnvelope in its one form: equal for all who received it."""
    digest: bytes
    """32 bytes: what the originator signed. Another digest is another envelope."""
    charge: Charge
    """The payer's debt; NO_CHARGE where the payload breaks a rule."""
    fault: str | None
    """The rule of a publish that the payload breaks (XIP-49 §3.3.4), None where it keeps all."""
    is_offence: bool = False
    """Whether the fault breaks a rule of XIP-49: a node of another make may take a payload that
    readers differ on (ADR 54)."""


def read_received(data: bytes, originator_id: int, signing_key: bytes) -> ReceivedEnvelope:
    """Verify an OriginatorEnvelope: both signatures, and all rules that its bytes alone show.

    ``signing_key`` has 65 bytes: the registry's key of the originator. Raises MalformedEnvelope
    where the bytes are no envelope of this originator, and InvalidSignature where another key
    signed: neither is evidence against the originator.
    """
    return read_received_publish(data, originator_id, signing_key)[0]


def read_received_publish(
    data: bytes, originator_id: int, signing_key: bytes
) -> tuple[ReceivedEnvelope, PublishRequest | None]:
    """Verify an OriginatorEnvelope as ``read_received``, and also return the publish in it.

    The publish is None where the payload cannot be read.
    """
    parsed = parse_originated(data)
    stated = parsed.envelope
    subject = f"envelope {stated.sequence_id} of originator {stated.originator_id}"
    if stated.originator_id != originator_id:
        raise MalformedEnvelope(subject, f"one of originator {originator_id}", "another's")
    if not 0 < stated.sequence_id <= _MOST_SEQUENCE_ID:
        expected = f"a sequence id from 1 to {_MOST_SEQUENCE_ID}"
        raise MalformedEnvelope(subject, expected, stated.sequence_id)
    digest = originator_digest(parsed.unsigned_originator_envelope)
    if (signer := recover_public_key(parsed.signature, digest)) != signing_key:
        got = f"0x{signer[1:9].hex()}…"
        raise InvalidSignature(subject, f"the signature of node {originator_id}", got)
    publish, refusal = _judged(parsed)
    fault = None if refusal is None else f"{refusal.reason}: {refusal}"
    received = ReceivedEnvelope(
        originator_id=originator_id,
        sequence_id=stated.sequence_id,
        originator_ns=stated.originator_ns,
        expires_at=_column(stated.expiry_unixtime),
        topic=NO_TOPIC if publish is None or fault else publish.client.topic,
        depends_on={} if publish is None else _without_zeros(publish.client.last_seen),
        envelope=in_one_form(parsed),
        digest=digest,
        charge=_charge(parsed, None if fault else publish),
        fault=fault,
        is_offence=refusal is not None and refusal.reason is not RefusalReason.NOT_STRICT,
    )
    return received, publish


def in_one_form(parsed: ParsedOriginatedEnvelope) -> bytes:
    """Return the OriginatorEnvelope as its originator writes it, without additions of others."""
    return b"".join(
        (
            wire.bytes_field(wire.UNSIGNED_TAG, parsed.unsigned_originator_envelope),
            wire.SIGNATURE_HEAD,
            parsed.signature,
        )
    )


def depends_on_itself(received: ReceivedEnvelope) -> bool:
    """Return whether an envelope depends on an envelope that its originator cannot have had yet.

    The payload names the same originator's sequence id, or a later one (XIP-49 §3.3.5).
    """
    return received.depends_on.get(received.originator_id, 0) >= received.sequence_id


def _judged(
    parsed: ParsedOriginatedEnvelope,
) -> tuple[PublishRequest | None, PublishRefused | None]:
    publish = None
    try:
        publish = read_publish(parsed.envelope.payer_envelope)
        _check_destination(publish)
        check_target(publish, parsed.envelope.originator_id)
        _check_key_package(publish, parsed.envelope.originator_ns)
        _check_expiry(parsed)
    except PublishRefused as error:
        return publish, error
    return publish, None


def _check_destination(publish: PublishRequest) -> None:
    if publish.client.destination is Destination.CHAIN:
        expected = "a payload for an originator"
        raise refused(RefusalReason.BELONGS_TO_CHAIN, "payload", expected, "one for the chain")


def _check_key_package(publish: PublishRequest, originator_ns: int) -> None:
    package = publish.client.key_package
    if package is None:
        return
    # The node checked the package before the envelope got its time, which may lie ahead of the
    # originator's clock: the package is evidence only if it was valid at no time in between.
    last_ns = package.not_after * NANOSECONDS_PER_SECOND
    judged_ns = max(originator_ns - _AHEAD_NS, min(originator_ns, last_ns), 0)
    check_payload(publish.client, judged_ns)


def _check_expiry(parsed: ParsedOriginatedEnvelope) -> None:
    expiry = parsed.envelope.expiry_unixtime
    if expiry is None:
        return
    # The time may lie ahead of the clock by which it expires.
    seconds = parsed.envelope.originator_ns // NANOSECONDS_PER_SECOND - MOST_SECONDS_AHEAD
    if expiry < seconds + LEAST_RETENTION_SECONDS:
        expected = f"one at least {LEAST_RETENTION_SECONDS} s after the envelope's time"
        raise refused(RefusalReason.INVALID_RETENTION, "expiry", expected, expiry)


def _charge(parsed: ParsedOriginatedEnvelope, accepted: PublishRequest | None) -> Charge:
    if accepted is None:
        return NO_CHARGE
    return charge_of(accepted, parsed.envelope.originator_ns, parsed.envelope.expiry_unixtime)


def _without_zeros(cursor: Cursor) -> dict[int, int]:
    return {each: last for each, last in cursor.sequence_ids.items() if last}


def _column(expiry: int | None) -> int | None:
    """Return an expiry for a database column: an expiry above the column's range never comes."""
    return None if expiry is None or expiry > _MOST_SEQUENCE_ID else expiry
