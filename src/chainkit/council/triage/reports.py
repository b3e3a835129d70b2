"""Signed misbehavior reports of every type (XIP-49 §3.2.7, §3.2.8), with nothing proved."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import misbehavior_digest
from chainkit.signatures import recover_public_key

_SUBJECT = "misbehavior report"


@dataclass(frozen=True, slots=True)
class SignedReport:
    """A report's statements, and the key that signed it."""

    node_id: int
    """The accused."""
    misbehavior: Misbehavior
    reporter: bytes
    """65 bytes: the public key that signed."""
    is_from_node: bool
    """Whether the signer says that it saw this itself, and did not only store it for a client."""
    digest: bytes
    """The digest that the reporter signed, 32 bytes: the same for the same words."""


def parse_report(data: bytes) -> SignedReport:
    """Take a signed MisbehaviorReport of any type apart.

    Raises MalformedData where it does not parse, is unsigned, or lacks what its type asks for, and
    InvalidSignature where the signature recovers to nobody.
    """
    signed = message_api_pb2.MisbehaviorReport()
    report = message_api_pb2.UnsignedMisbehaviorReport()
    try:
        signed.ParseFromString(data)
        report.ParseFromString(signed.unsigned_misbehavior_report)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a MisbehaviorReport", "other bytes") from error
    if not signed.signature.bytes:
        raise MalformedData(_SUBJECT, "a report and its signature", "nobody's signature")
    digest = misbehavior_digest(signed.unsigned_misbehavior_report)
    return SignedReport(
        node_id=report.misbehaving_node_id,
        misbehavior=_misbehavior(report),
        reporter=recover_public_key(signed.signature.bytes, digest),
        is_from_node=report.submitted_by_node,
        digest=digest,
    )


def _misbehavior(report: message_api_pb2.UnsignedMisbehaviorReport) -> Misbehavior:
    try:
        misbehavior = Misbehavior(report.type)
    except ValueError as error:
        raise MalformedData(_SUBJECT, "a type from 1 to 8 (§3.2.7)", report.type) from error
    expected = "liveness" if misbehavior.is_liveness else "safety"
    if (got := report.WhichOneof("failure")) != expected:
        subject = f"{_SUBJECT} {misbehavior.name}"
        raise MalformedData(subject, f"what the {expected} failure was", got or "nothing")
    if expected == "safety" and not report.safety.envelopes:
        raise MalformedData(_SUBJECT, "the served envelopes", "none")
    return misbehavior
