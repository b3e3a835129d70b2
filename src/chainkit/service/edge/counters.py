"""Counts of what Envoy and its edge ended, beside what the service's own gate refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from chainkit.service.edge.inside import Inside
from chainkit.service.edge.unfinished import TOO_LARGE, UNFINISHED

_OF_ENVOY: Final[Mapping[str, str]] = {
    "downstream_rq_header_timeout": "headers_late",
    "downstream_rq_timeout": "request_late",
    "downstream_rq_idle_timeout": "quiet",
    "downstream_rq_too_large": "too_large",
    "downstream_cx_protocol_error": "no_http",
    "header_overflow": "headers_too_large",
    "downstream_global_cx_overflow": "too_many_connections",
    "downstream_cx_transport_socket_connect_timeout": "tls_late",
    "connection_error": "tls_failed",
    "downstream_rq_overload_close": "memory_full",
    "downstream_cx_overload_reject": "memory_full",
    "reset_high_memory_stream.count": "memory_full",
}
"""Envoy's counters by the ends of their names, and the reasons that they stand for."""
_OWN: Final = (UNFINISHED, TOO_LARGE)


def count_edge(registry: CollectorRegistry, prefix: str) -> None:
    """Add the counts to a service's metrics; all are 0 in a process that is not Envoy's."""
    registry.register(_EdgeCounts(f"{prefix}_edge_ended"))


class _EdgeCounts(Collector):
    def __init__(self, name: str) -> None:
        self._name = name

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Ask Envoy at each scrape; its counts are left out where it does not answer."""
        text = "Connections, streams and requests that Envoy ended, by the reason."
        family = CounterMetricFamily(self._name, text, labels=("reason",))
        for reason, count in _counts().items():
            family.add_metric((reason,), count)
        yield family

    def describe(self) -> Iterator[CounterMetricFamily]:
        """Name the metric without asking Envoy."""
        yield CounterMetricFamily(self._name, "", labels=("reason",))


def _counts() -> Mapping[str, int]:
    process = Inside.present
    if process is None:
        return dict.fromkeys((*_OF_ENVOY.values(), *_OWN), 0)
    counts = {reason: process.refused[reason] for reason in _OWN}
    try:
        found = process.admin.counters(f"({'|'.join(_OF_ENVOY)})$")
    except OSError:
        return counts
    for name, reason in _OF_ENVOY.items():
        # Envoy refuses a large request too, where it waits for a whole one.
        counts[reason] = counts.get(reason, 0) + found.get(name.rpartition(".")[2], 0)
    return counts
