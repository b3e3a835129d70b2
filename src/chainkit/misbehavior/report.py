"""Unsigned misbehavior reports of every type: written by reporters, read by all (XIP-49 §3.2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from chainkit.errors import MalformedData
from chainkit.misbehavior.topic_evidence import TopicEvidence, parse_topic_evidence
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.proto import message_api_pb2

LONGEST_RESPONSE_NS: Final = 2**32 - 1
"""The field has 32 bits: 4.29 s. A longer time is written as this one."""

_SUBJECT: Final = "misbehavior report"

LivenessRequest: TypeAlias = (
    message_api_pb2.SubscribeEnvelopesRequest
    | message_api_pb2.QueryEnvelopesRequest
    | message_api_pb2.PublishPayerEnvelopesRequest
)
"""A request that was answered late, with an error, or not at all."""

_FIELDS: Final = {
    message_api_pb2.SubscribeEnvelopesRequest: "subscribe",
    message_api_pb2.QueryEnvelopesRequest: "query",
    message_api_pb2.PublishPayerEnvelopesRequest: "publish",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The statements of an UnsignedMisbehaviorReport; nothing is proved."""

    node_id: int
    """The accused."""
    misbehavior: Misbehavior
    reporter_time_ns: int
    """Nanoseconds since 1970, by the reporter's clock."""
    is_from_node: bool
    """Whether the signer states that it saw this itself, and did not only store it for a client."""
    envelopes: tuple[bytes, ...] = ()
    """Serialized OriginatorEnvelopes of a safety failure; of two, the later one comes first."""
    response_time_ns: int | None = None
    """Nanoseconds of a liveness failure, LONGEST_RESPONSE_NS at most; None for one of safety."""
    topics: TopicEvidence | None = None
    """Topic heads of a safety failure; None where its envelopes are all its evidence."""


def safety_report(
    node_id: int,
    misbehavior: Misbehavior,
    envelopes: Sequence[bytes],
    reporter_time_ns: int,
    is_from_node: bool,
    topics: TopicEvidence | None = None,
) -> bytes:
    """Serialize an UnsignedMisbehaviorReport whose evidence are serialized OriginatorEnvelopes.

    With ``topics``, these are beside topic heads. Raises MalformedData for evidence that does not
    parse.
    """
    report = _report(node_id, misbehavior, reporter_time_ns, is_from_node)
    if topics is not None:
        report.safety.topic_evidence = topics.written()
    try:
        for envelope in envelopes:
            report.safety.envelopes.add().ParseFromString(envelope)
    except DecodeError as error:
        raise MalformedData("evidence", "a serialized OriginatorEnvelope", error) from error
    return report.SerializeToString()


def liveness_report(
    node_id: int,
    misbehavior: Misbehavior,
    request: LivenessRequest,
    response_time_ns: int,
    reporter_time_ns: int,
    is_from_node: bool,
) -> bytes:
    """Serialize an UnsignedMisbehaviorReport about a request and how long its answer took."""
    report = _report(node_id, misbehavior, reporter_time_ns, is_from_node)
    report.liveness.response_time_ns = min(response_time_ns, LONGEST_RESPONSE_NS)
    getattr(report.liveness, _FIELDS[type(request)]).CopyFrom(request)
    return report.SerializeToString()


def parse_unsigned(data: bytes) -> Report:
    """Decode an UnsignedMisbehaviorReport of any type.

    Raises MalformedData where the bytes do not parse, or lack a field that the type requires.
    """
    try:
        report = message_api_pb2.UnsignedMisbehaviorReport.FromString(data)
    except DecodeError as error:
        raise MalformedData(_SUBJECT, "an UnsignedMisbehaviorReport", "other bytes") from error
    misbehavior = _misbehavior(report)
    is_liveness = misbehavior.is_liveness
    topics = report.safety.topic_evidence
    return Report(
        node_id=report.misbehaving_node_id,
        misbehavior=misbehavior,
        reporter_time_ns=report.reporter_time_ns,
        is_from_node=report.submitted_by_node,
        envelopes=tuple(each.SerializeToString() for each in report.safety.envelopes),
        response_time_ns=report.liveness.response_time_ns if is_liveness else None,
        topics=parse_topic_evidence(topics) if topics else None,
    )


def _report(
    node_id: int, misbehavior: Misbehavior, reporter_time_ns: int, is_from_node: bool
) -> message_api_pb2.UnsignedMisbehaviorReport:
    return message_api_pb2.UnsignedMisbehaviorReport(
        reporter_time_ns=reporter_time_ns,
        misbehaving_node_id=node_id,
        type=f"MISBEHAVIOR_{misbehavior.name}",
        submitted_by_node=is_from_node,
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
    safety = report.safety
    if expected == "safety" and not safety.envelopes and not safety.topic_evidence:
        raise MalformedData(_SUBJECT, "the served envelopes", "none")
    return misbehavior
