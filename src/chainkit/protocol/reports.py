"""Misbehavior reports (XIP-49 §3.2.7, §3.2.8) about envelopes that differ from the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.protocol.proto import message_api_pb2
from chainkit.signatures import MISBEHAVIOR_LABEL, SigningKey, keccak256, recover_public_key


@dataclass(frozen=True, slots=True)
class BlockchainInconsistencyReport:
    """A MisbehaviorReport of type BLOCKCHAIN_INCONSISTENCY, taken apart."""

    reporter_public_key: bytes
    """65 bytes, recovered from the signature."""
    reporter_time_ns: int
    """Nanoseconds since 1970, by the reporter's clock."""
    misbehaving_node_id: int
    envelopes: tuple[bytes, ...]
    """Serialized OriginatorEnvelopes: the evidence, each signed by the accused node."""


def misbehavior_digest(unsigned_report: bytes) -> bytes:
    """Return the 32 bytes that a MisbehaviorReport's signature is over."""
    return keccak256(MISBEHAVIOR_LABEL + unsigned_report)


def unsigned_inconsistency_report(
    node_id: int, envelopes: Sequence[bytes], reporter_time_ns: int
) -> bytes:
    """Serialize an UnsignedMisbehaviorReport of type BLOCKCHAIN_INCONSISTENCY (§3.2.7).

    ``envelopes`` are serialized OriginatorEnvelopes as the accused node served them. The
    reporter is an auditor, not a node: ``submitted_by_node`` stays false. Raises MalformedData for
    evidence that does not parse.
    """
    report = message_api_pb2.UnsignedMisbehaviorReport(
        reporter_time_ns=reporter_time_ns,
        misbehaving_node_id=node_id,
        type=message_api_pb2.MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY,
    )
    try:
        for envelope in envelopes:
            report.safety.envelopes.add().ParseFromString(envelope)
    except DecodeError as error:
        raise MalformedData("evidence", "a serialized OriginatorEnvelope", error) from error
    return report.SerializeToString()


def sign_report(unsigned_report: bytes, key: SigningKey) -> bytes:
    """Serialize a MisbehaviorReport with the reporter's signature over an unsigned one (§3.2.8).

    The server's time is left to the server that stores the report.
    """
    signed = message_api_pb2.MisbehaviorReport(unsigned_misbehavior_report=unsigned_report)
    signed.signature.bytes = key.sign(misbehavior_digest(unsigned_report))
    return signed.SerializeToString()


def sign_inconsistency_report(
    node_id: int, envelopes: Sequence[bytes], reporter_time_ns: int, key: SigningKey
) -> bytes:
    """Serialize a signed MisbehaviorReport; see unsigned_inconsistency_report and sign_report."""
    return sign_report(unsigned_inconsistency_report(node_id, envelopes, reporter_time_ns), key)


def parse_inconsistency_report(data: bytes) -> BlockchainInconsistencyReport:
    """Decode a signed report and recover its signer.

    Raises MalformedData where the report does not parse, is of another type or without evidence,
    and InvalidSignature where no key is recovered.
    """
    signed = message_api_pb2.MisbehaviorReport()
    report = message_api_pb2.UnsignedMisbehaviorReport()
    try:
        signed.ParseFromString(data)
        report.ParseFromString(signed.unsigned_misbehavior_report)
    except DecodeError as error:
        raise MalformedData("misbehavior report", "a MisbehaviorReport", "other bytes") from error
    if report.type != message_api_pb2.MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY:
        raise MalformedData("misbehavior report", "type BLOCKCHAIN_INCONSISTENCY (8)", report.type)
    if not report.safety.envelopes:
        raise MalformedData("misbehavior report", "the served envelopes", "none")
    digest = misbehavior_digest(signed.unsigned_misbehavior_report)
    return BlockchainInconsistencyReport(
        reporter_public_key=recover_public_key(signed.signature.bytes, digest),
        reporter_time_ns=report.reporter_time_ns,
        misbehaving_node_id=report.misbehaving_node_id,
        envelopes=tuple(envelope.SerializeToString() for envelope in report.safety.envelopes),
    )


def reporter_of(data: bytes, unsigned_report: bytes) -> bytes:
    """Return the 65-byte public key that signed a report, which must be this one.

    Raises MalformedData where ``data`` is no MisbehaviorReport, or one of other bytes, and
    InvalidSignature where the signature recovers to nobody.
    """
    subject = "misbehavior report"
    signed = message_api_pb2.MisbehaviorReport()
    try:
        signed.ParseFromString(data)
    except DecodeError as error:
        raise MalformedData(subject, "a MisbehaviorReport", "other bytes") from error
    if signed.unsigned_misbehavior_report != unsigned_report:
        raise MalformedData(subject, "the unsigned report beside it", "another")
    return recover_public_key(signed.signature.bytes, misbehavior_digest(unsigned_report))
