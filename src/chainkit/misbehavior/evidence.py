"""Evidence of a safety failure, judged by its bytes alone, without any chain (XIP-49 §3.2.7).

A proof holds for everybody: the accused signed what no honest node signs. A claim does not
contradict the evidence, but depends on the reporter, who can leave out data that would excuse the
accused. Everything else is refuted, such as evidence that the accused did not sign.

A gap is only ever claimed: any two envelopes that are not neighbours look like a gap. A topic head
that leaves an envelope out proves a gap. A cycle of dependencies over several originators shows
that one of them lied, and not which one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

from chainkit.errors import MalformedData
from chainkit.misbehavior.report import Report
from chainkit.misbehavior.topic_evidence import TopicEvidence, judged_heads
from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.envelope import parse_originator_envelope, recover_node_key
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.protocol.received_envelope import (
    MOST_SECONDS_AHEAD,
    ReceivedEnvelope,
    depends_on_itself,
    read_received,
)
from chainkit.signatures import keccak256
from chainkit.types import NANOSECONDS_PER_SECOND

MOST_ENVELOPES: Final = 16
"""Envelopes of one report: two are enough for all but a cycle."""

_AHEAD_NS: Final = MOST_SECONDS_AHEAD * NANOSECONDS_PER_SECOND


class Weight(StrEnum):
    """How much the evidence of a report is worth."""

    PROVED = "proved"
    """One report is enough, whoever signed it."""
    CLAIMED = "claimed"
    """Several reporters must report the same failure."""
    REFUTED = "refuted"
    """The evidence does not show a failure of the report's type."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The weight of a report, and its subject."""

    weight: Weight
    reason: str
    """A few words, for people."""
    subject: bytes
    """32 bytes: equal for reports of the same failure, whatever else the reports contain."""
    needs_chain: bool = False
    """Whether the report is about a payload of the chain: only the chain shows if the payload is
    right."""


def judge_safety(report: Report, keys: Mapping[int, bytes], now_ns: int) -> Judgement:
    """Judge a report of a safety failure.

    ``keys`` are the registry's, 65 bytes each, by node id; ``now_ns`` is the judge's own clock in
    nanoseconds since 1970. A report of BLOCKCHAIN_INCONSISTENCY is never proved here: that takes
    the chain. A report of a liveness failure is refuted: it has no evidence to check.
    """
    if report.misbehavior.is_liveness:
        return _refuted(report, f"{report.misbehavior.name} is no safety failure")
    if report.node_id not in keys:
        return _refuted(report, f"node {report.node_id} is not registered")
    if report.topics is not None:
        return _judge_heads(report, report.topics, keys)
    if not 0 < len(report.envelopes) <= MOST_ENVELOPES:
        return _refuted(report, f"expected 1 to {MOST_ENVELOPES} envelopes")
    if _is_about_chain(report):
        return _judge_of_chain(report, keys[report.node_id])
    try:
        received = [_received(each, keys) for each in report.envelopes]
    except MalformedData as error:
        return _refuted(report, str(error))
    if not any(each.originator_id == report.node_id for each in received):
        return _refuted(report, f"node {report.node_id} signed none of its envelopes")
    return _JUDGES[report.misbehavior](report, received, now_ns)


def _received(data: bytes, keys: Mapping[int, bytes]) -> ReceivedEnvelope:
    originator_id = parse_originated(data).envelope.originator_id
    if originator_id not in keys:
        raise MalformedData("envelope", "one of a registered node", f"node {originator_id}'s")
    return read_received(data, originator_id, keys[originator_id])


def _judge_duplicate(
    report: Report, received: Sequence[ReceivedEnvelope], now_ns: int
) -> Judgement:
    digests: dict[int, bytes] = {}
    for each in received:
        # Two envelopes of another originator show nothing about the accused.
        if each.originator_id != report.node_id:
            continue
        if digests.setdefault(each.sequence_id, each.digest) != each.digest:
            reason = f"two different envelopes {each.sequence_id}"
            return _proved(report, reason, str(each.sequence_id).encode())
    return _refuted(report, f"no two envelopes of node {report.node_id} with one id differ")


def _judge_order(report: Report, received: Sequence[ReceivedEnvelope], now_ns: int) -> Judgement:
    current, *earlier = received
    if len({each.originator_id for each in received}) > 1:
        return _refuted(report, "envelopes of several originators")
    for lower, higher in pairwise(sorted(received, key=lambda each: each.sequence_id)):
        if lower.sequence_id < higher.sequence_id and lower.originator_ns > higher.originator_ns:
            reason = f"time goes back from {lower.sequence_id} to {higher.sequence_id}"
            return _proved(report, reason, lower.digest + higher.digest)
    latest = max(received, key=lambda each: each.originator_ns)
    if latest.originator_ns > now_ns + _AHEAD_NS:
        return _proved(report, f"{latest.sequence_id} lies in the future", latest.digest)
    if latest.originator_ns > report.reporter_time_ns + _AHEAD_NS:
        reason = f"{latest.sequence_id} lay in the future by the reporter's clock"
        return _claimed(report, reason, latest.digest)
    previous = earlier[0].sequence_id if earlier else 0
    is_repeated = any(each.digest == current.digest for each in earlier)
    if current.sequence_id == previous + 1 or is_repeated:
        reason = f"{current.sequence_id} follows {previous}, and time does not go back"
        return _refuted(report, reason)
    subject = current.digest + (earlier[0].digest if earlier else b"")
    return _claimed(report, f"{current.sequence_id} came after {previous}", subject)


def _judge_causal(report: Report, received: Sequence[ReceivedEnvelope], now_ns: int) -> Judgement:
    for each in received:
        if each.originator_id == report.node_id and depends_on_itself(each):
            reason = f"{each.sequence_id} depends on itself or a later one"
            return _proved(report, reason, each.digest)
    subject = b"".join(sorted(each.digest for each in received))
    if len(received) == 1:
        if received[0].depends_on:
            return _claimed(report, "a dependency is said to be missing", subject)
        return _refuted(report, "it depends on nothing")
    for each, following in zip(received, [*received[1:], received[0]], strict=True):
        if each.depends_on.get(following.originator_id, 0) < following.sequence_id:
            reason = f"{_shown(each)} does not depend on {_shown(following)}"
            return _refuted(report, f"no cycle: {reason}")
    return _claimed(report, "a cycle, in which one of several originators lied", subject)


def _judge_payload(report: Report, received: Sequence[ReceivedEnvelope], now_ns: int) -> Judgement:
    for each in received:
        if each.originator_id == report.node_id and each.is_offence:
            return _proved(report, f"{each.sequence_id}: {each.fault}", each.digest)
    return _refuted(report, "its payload keeps the rules")


_JUDGES: Final[
    Mapping[Misbehavior, Callable[[Report, Sequence[ReceivedEnvelope], int], Judgement]]
] = {
    Misbehavior.OUT_OF_ORDER: _judge_order,
    Misbehavior.DUPLICATE_SEQUENCE_ID: _judge_duplicate,
    Misbehavior.CAUSAL_ORDERING: _judge_causal,
    Misbehavior.INVALID_PAYLOAD: _judge_payload,
}


def _judge_heads(report: Report, topics: TopicEvidence, keys: Mapping[int, bytes]) -> Judgement:
    if report.misbehavior is not Misbehavior.OUT_OF_ORDER:
        return _refuted(report, f"topic heads show no {report.misbehavior.name}")
    if len(report.envelopes) > MOST_ENVELOPES:
        return _refuted(report, f"expected up to {MOST_ENVELOPES} envelopes")
    try:
        received = [_received(each, keys) for each in report.envelopes]
        proved = judged_heads(topics, report.node_id, keys[report.node_id], received)
    except MalformedData as error:
        return _refuted(report, str(error))
    if proved is None:
        return _refuted(report, "the heads agree, and leave none of the envelopes out")
    return _proved(report, *proved)


def _is_about_chain(report: Report) -> bool:
    """Return whether the evidence are payloads of the chain, which each node signs itself."""
    if report.misbehavior is Misbehavior.BLOCKCHAIN_INCONSISTENCY:
        return True
    try:
        parse_originator_envelope(report.envelopes[0])
    except MalformedData:
        return False
    return True


def _judge_of_chain(report: Report, key: bytes) -> Judgement:
    try:
        served = [parse_originator_envelope(each) for each in report.envelopes]
        signers = {recover_node_key(each) for each in served}
    except MalformedData as error:
        return _refuted(report, str(error))
    if signers != {key}:
        return _refuted(report, f"node {report.node_id} did not sign it")
    subject = b"".join(sorted(keccak256(each.unsigned_originator_envelope) for each in served))
    claim = _claimed(report, "a payload of the chain, to be compared with the chain", subject)
    return replace(claim, needs_chain=True)


def _shown(received: ReceivedEnvelope) -> str:
    return f"{received.sequence_id} of originator {received.originator_id}"


def _proved(report: Report, reason: str, subject: bytes) -> Judgement:
    return Judgement(Weight.PROVED, reason, _subject(report, Weight.PROVED, subject))


def _claimed(report: Report, reason: str, subject: bytes) -> Judgement:
    return Judgement(Weight.CLAIMED, reason, _subject(report, Weight.CLAIMED, subject))


def _refuted(report: Report, reason: str) -> Judgement:
    return Judgement(Weight.REFUTED, reason, _subject(report, Weight.REFUTED, b""))


def _subject(report: Report, weight: Weight, subject: bytes) -> bytes:
    head = f"{report.node_id} {report.misbehavior.name} {weight} ".encode()
    return keccak256(head + subject)
