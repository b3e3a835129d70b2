"""A rule that a node broke, with the evidence: stored first, and reported on request."""

from __future__ import annotations

from dataclasses import dataclass

from chainkit.misbehavior.report import safety_report
from chainkit.misbehavior.topic_evidence import TopicEvidence
from chainkit.misbehavior.types import Misbehavior


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken rule, as this client saw it."""

    node_id: int
    """The node that signed the evidence."""
    misbehavior: Misbehavior | None
    """The type in XIP-49 §3.2.7; None without a type, when nobody would take a report."""
    reason: str
    """A few words, for people."""
    envelopes: tuple[bytes, ...]
    """OriginatorEnvelopes; the later one of two comes first."""
    topics: TopicEvidence | None = None
    """Topic heads, where the evidence needs some."""

    def report(self, reporter_time_ns: int) -> bytes | None:
        """Return an UnsignedMisbehaviorReport of a client; None for a breach without a type.

        ``reporter_time_ns`` is the client's clock in nanoseconds since 1970.
        """
        if self.misbehavior is None:
            return None
        return safety_report(
            self.node_id,
            self.misbehavior,
            self.envelopes,
            reporter_time_ns,
            is_from_node=False,
            topics=self.topics,
        )
