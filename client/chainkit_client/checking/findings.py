"""A fault that a check found in a node: its type, its weight, and its report."""

from __future__ import annotations

from dataclasses import dataclass, field

from chainkit.misbehavior.evidence import Weight, judge_safety
from chainkit.misbehavior.report import LivenessRequest, liveness_report, parse_unsigned
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import Keys


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of one node."""

    node_id: int
    text: str
    """A few words, for people."""
    misbehavior: Misbehavior | None = None
    """The type in XIP-49 §3.2.7; None where the node signed no evidence."""
    weight: Weight | None = None
    """The weight of the report; None where the fault was only seen."""
    unsigned_report: bytes | None = field(default=None, repr=False)
    """An UnsignedMisbehaviorReport; None where no node would take a report."""

    @property
    def key(self) -> tuple[int, Misbehavior | None, str]:
        """The key of a fault, the same each time the fault is found."""
        return self.node_id, self.misbehavior, self.text


def found_breach(breach: Breach, keys: Keys, now_ns: int) -> Finding:
    """Return a breach as a finding, judged as the receivers of its report judge it."""
    report = breach.report(now_ns)
    weight = None
    if report is not None:
        weight = judge_safety(parse_unsigned(report), keys.by_node, now_ns).weight
    return Finding(breach.node_id, breach.reason, breach.misbehavior, weight, report)


def found_delay(
    node_id: int,
    misbehavior: Misbehavior,
    request: LivenessRequest,
    seconds: float,
    text: str,
    now_ns: int,
) -> Finding:
    """Return the finding of a late, failed or missing answer."""
    response_ns = int(seconds * NANOSECONDS_PER_SECOND)
    report = liveness_report(node_id, misbehavior, request, response_ns, now_ns, is_from_node=False)
    return Finding(node_id, text, misbehavior, Weight.CLAIMED, report)
