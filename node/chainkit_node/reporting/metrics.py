"""Numbers about the reports that a node hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from chainkit.misbehavior.types import Misbehavior
from chainkit_node.reporting.refusals import Reason
from chainkit_node.storage.reports import FROM_CLIENT, FROM_NODE

_PREFIX: Final = "chainkit_node_reports"


class ReportMetrics:
    """Counts reports; written on several threads, read at each scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Start at zero."""
        self._stored = Gauge(
            f"{_PREFIX}_stored",
            "Reports of misbehavior that are stored, by type and origin.",
            ("type", "origin"),
            registry=registry,
        )
        self._refused = Counter(
            f"{_PREFIX}_refused",
            "Reports of misbehavior that were not stored, by reason.",
            ("reason",),
            registry=registry,
        )
        self._about_self = Counter(
            f"{_PREFIX}_about_self",
            "Proofs of misbehavior of this node itself that were stored.",
            registry=registry,
        )
        # Each label is known from the start: Prometheus sees no increase from nothing to 1.
        for reason in Reason:
            self._refused.labels(reason)

    def holds(self, rows: Mapping[tuple[int, str], int]) -> None:
        """Set how many reports are stored, by type and origin."""
        for misbehavior in Misbehavior:
            for origin in (FROM_NODE, FROM_CLIENT):
                count = rows.get((int(misbehavior), origin), 0)
                self._stored.labels(misbehavior.name, origin).set(count)

    def refused(self, reason: Reason) -> None:
        """Count a report that was not stored."""
        self._refused.labels(reason).inc()

    def was_accused(self, count: int) -> None:
        """Count new proofs about this node itself."""
        self._about_self.inc(count)
