"""Judges whether a node may host a report, and of which kind it is (XIP-49 §3.2.7, §3.2.8).

A report is identified by what it shows, not by its bytes: a proof by the failure that it proves,
whoever found it; a claim of a safety failure by the failure and its origin, so that a client's
claim never stands for the node's own; a liveness failure by its instance, which is its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chainkit.errors import MalformedData
from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import Report, parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.received_envelope import MOST_SECONDS_AHEAD
from chainkit.protocol.reports import misbehavior_digest
from chainkit.signatures import keccak256
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.reporting.bounds import ReportBounds
from chainkit_node.reporting.refusals import InvalidReport, LargeReport, RefutedReport
from chainkit_node.storage.reports import FROM_CLIENT, ReportKind

_SUBJECT = "misbehavior report"

_MOST_AHEAD_NS = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class JudgedReport:
    """A report that may be stored."""

    kind: ReportKind
    digest: bytes
    """32 bytes: another report with the same digest is not stored."""
    report: bytes
    """A serialized UnsignedMisbehaviorReport."""


@dataclass(frozen=True, slots=True)
class ReportJudge:
    """The facts by which reports are judged."""

    keys: Mapping[int, bytes]
    """The registry's keys, 65 bytes each, by node id."""
    now_ns: int
    """The node's own clock, in nanoseconds since 1970."""
    is_on_chain: Callable[[bytes], bool]
    """Returns whether the chain has the payload of an OriginatorEnvelope, as the envelope says."""
    bounds: ReportBounds

    def judge(self, data: bytes, origin: str) -> JudgedReport:
        """Judge an UnsignedMisbehaviorReport.

        Raises LargeReport, InvalidReport for a report that no client may submit, or that accuses
        nobody, and RefutedReport where the evidence does not show what the report says.
        """
        _check_size(data, self.bounds.report_bytes)
        try:
            report = parse_unsigned(data)
        except MalformedData as error:
            raise InvalidReport(error.subject, error.expected, error.got) from error
        if origin == FROM_CLIENT and report.is_from_node:
            raise InvalidReport(_SUBJECT, "submitted_by_node false from a client", "true")
        if origin == FROM_CLIENT:
            self._check_time(report)
        if report.node_id not in self.keys:
            expected = "a node of the registry"
            raise InvalidReport("misbehaving_node_id", expected, report.node_id)
        if report.misbehavior.is_liveness:
            _check_size(data, self.bounds.liveness_bytes)
            kind = _kind(report, origin, Weight.CLAIMED)
            return JudgedReport(kind, misbehavior_digest(data), data)
        weight, digest = self._judge_safety(report, origin)
        return JudgedReport(_kind(report, origin, weight), digest, data)

    def _check_time(self, report: Report) -> None:
        """Check a client's clock. Reports may be handed in long after they were made."""
        ahead = report.reporter_time_ns - self.now_ns
        if ahead > _MOST_AHEAD_NS:
            expected = f"one at most {MOST_SECONDS_AHEAD} s ahead of this node's"
            got = f"one {ahead // NANOSECONDS_PER_SECOND} s ahead"
            raise InvalidReport("reporter's clock", expected, got)

    def _judge_safety(self, report: Report, origin: str) -> tuple[Weight, bytes]:
        judgement = judge_safety(report, self.keys, self.now_ns)
        if judgement.weight is Weight.REFUTED:
            raise _refuted(report, judgement.reason)
        is_about_chain = report.misbehavior is Misbehavior.BLOCKCHAIN_INCONSISTENCY
        if is_about_chain and all(map(self.is_on_chain, report.envelopes)):
            raise _refuted(report, "the chain has exactly what the node served")
        if judgement.weight is Weight.PROVED:
            return judgement.weight, judgement.subject
        return judgement.weight, keccak256(origin.encode() + judgement.subject)


def _kind(report: Report, origin: str, weight: Weight) -> ReportKind:
    return ReportKind(report.node_id, int(report.misbehavior), origin, str(weight))


def _refuted(report: Report, reason: str) -> RefutedReport:
    return RefutedReport(_SUBJECT, f"evidence of {report.misbehavior.name}", reason)


def _check_size(data: bytes, most: int) -> None:
    if len(data) > most:
        expected = f"at most {most} bytes; two envelopes are enough evidence"
        raise LargeReport(_SUBJECT, expected, f"{len(data)} bytes")
