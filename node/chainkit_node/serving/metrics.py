"""A node's work for others, in numbers for Prometheus: all are named ``chainkit_node_…``."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prometheus_client import CollectorRegistry, Counter, generate_latest

from chainkit.service.monitor_server import Answer
from chainkit_indexer.monitoring.monitor import Monitor

_PREFIX: Final = "chainkit_node"


class NodeMetrics:
    """Counts what strangers ask for; written on several threads, read at each scrape."""

    def __init__(self) -> None:
        """Start at zero, in a registry of its own."""
        self._registry = CollectorRegistry()
        self._refusals = Counter(
            f"{_PREFIX}_refusals",
            "Calls that were refused, by method and by gRPC's code.",
            ["method", "code"],
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def refused(self, method: str, code: str) -> None:
        """Take note of a refused call."""
        self._refusals.labels(method, code).inc()


class NodeMonitor(Monitor):
    """The indexer's monitor, whose ``/metrics`` has the node's numbers, too."""

    node_metrics: NodeMetrics | None = None

    def _read(self) -> Answer:
        answer = super()._read()
        if self.node_metrics is None:
            return answer
        # Two registries without a common name are one text.
        return replace(answer, body=answer.body + self.node_metrics.text())
