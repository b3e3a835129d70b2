"""Signed misbehavior reports of every type (XIP-49 §3.2.7, §3.2.8), with nothing proved."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.misbehavior.report import Report, parse_unsigned
from chainkit.protocol.proto import message_api_pb2
from chainkit.protocol.reports import misbehavior_digest
from chainkit.signatures import recover_public_key

_SUBJECT = "misbehavior report"


@dataclass(frozen=True, slots=True)
class SignedReport:
    """A report's statements, and the key that signed it."""

    report: Report
    reporter: bytes
    """65 bytes: the public key that signed."""
    digest: bytes
    """The digest that the reporter signed, 32 bytes: the same for the same words."""

    @property
    def node_id(self) -> int:
        """The accused."""
        return self.report.node_id


def parse_signed(data: bytes) -> SignedReport:
    """Decode a signed MisbehaviorReport of any type.

    Raises MalformedData where the bytes do not parse, are unsigned, or lack a field that the type
    requires, and InvalidSignature where no key is recovered.
    """
    try:
        signed = message_api_pb2.MisbehaviorReport.FromString(data)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "a MisbehaviorReport", "other bytes") from error
    return take_apart(signed)


def take_apart(signed: message_api_pb2.MisbehaviorReport) -> SignedReport:
    """Take a parsed MisbehaviorReport apart; raises as ``parse_signed``."""
    if not signed.signature.bytes:
        raise MalformedData(_SUBJECT, "a report and its signature", "nobody's signature")
    unsigned = signed.unsigned_misbehavior_report
    digest = misbehavior_digest(unsigned)
    report = parse_unsigned(unsigned)
    return SignedReport(report, recover_public_key(signed.signature.bytes, digest), digest)
