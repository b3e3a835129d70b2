"""A node's work for others, in numbers for Prometheus: all are named ``chainkit_node_…``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from chainkit.service.edge.counters import count_edge
from chainkit.service.node_token import TokenFault
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.accounting.books import Standing
from chainkit_node.originating.storage_metrics import StorageMetrics
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.peers.directory import RegistryState
from chainkit_node.replicating.intake import Taken
from chainkit_node.replicating.repairer import Repair
from chainkit_node.reporting.metrics import ReportMetrics
from chainkit_node.watching.watchdog import Watched

_PREFIX: Final = "chainkit_node"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ENVELOPES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

STORED: Final = "stored"
"""Outcome of a publish that was not refused; a refused one's is gRPC's code in lower case."""


class NodeMetrics:
    """Counts what strangers ask for; written on several threads, read at each scrape."""

    def __init__(self) -> None:
        """Start at zero, in a registry of its own."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self.reports = ReportMetrics(self._registry)
        self.storage = StorageMetrics(self._registry)
        count_edge(self._registry, _PREFIX)
        self._refusals = self._counter(
            "refusals", "Calls that were refused, by method and by gRPC's code.", "method", "code"
        )
        self._refused_tokens = self._counter(
            "refused_tokens", "Tokens of nodes that were refused, by the reason.", "reason"
        )
        self._ready = self._gauge("ready", "1 where health checks are answered with SERVING.")
        self._clock = self._gauge(
            "clock_contradicted", "1 while nothing is signed, because others contradict the clock."
        )
        self._registry_state = Gauge(
            f"{_PREFIX}_registry_state",
            "1 for what the registry says of this node.",
            ("state",),
            registry=self._registry,
        )
        self._own_log = self._gauge(
            "own_log_waits", "1 while nothing is signed, because the own log may be incomplete."
        )
        self._free = self._gauge(
            "storage_free_bytes", "Bytes that the database may still take; NaN where not known."
        )
        self._free.set(math.nan)
        self._short = self._gauge(
            "storage_short", "1 while publishes are refused, because too little space is free."
        )
        self._refused_reports = self._gauge(
            "payer_reports_refused",
            "Payer reports of other nodes that were refused within a week.",
        )
        self._unattested = self._gauge(
            "payer_report_unattested_seconds",
            "How long the oldest own payer report waits for a majority's signatures; 0 for none.",
        )
        self._twin = self._gauge("twin_found", "1 where another process has this node's key.")
        self._accusations = self._gauge(
            "reports_about_self_at_peers",
            "Proofs about this node itself that other nodes stored within a day.",
        )
        self._lag = self._gauge("loop_lag_seconds", "How late the event loop is.")
        self._waiting = self._gauge(
            "updates_waiting",
            "Identity updates that wait for a chain's answer, and hold up others.",
        )
        self.updates_waiting = 0
        self._open = self._gauge("streams_open", "Streams of envelopes that are open.")
        self.node_streams: Callable[[], int] = int
        """Counts the streams that other nodes have open here."""
        self._of_nodes = self._gauge("streams_of_nodes_open", "Streams among them of other nodes.")
        self._behind = self._counter(
            "streams_behind", "Times that a stream fell behind, and had to read the database again."
        )
        self._sent = self._counter("envelopes_sent", "Envelopes sent to readers.", "method")
        self._replicated = self._counter(
            "envelopes_replicated",
            "Envelopes of other nodes: new, late (a gap was filled), repeated or disputed.",
            "originator",
            "kind",
        )
        self._gaps = self._counter("gaps_found", "Gaps between envelopes of other nodes.")
        self._repaired = self._counter(
            "envelopes_repaired",
            "Envelopes that a comparison with another node brought: missing or differing.",
            "originator",
            "kind",
        )
        self._watched = self._counter(
            "watch_compared",
            "Envelopes that a node served to a stranger, and were compared.",
            "peer",
        )
        self._differing = self._counter(
            "watch_differing", "Envelopes among them that are not as they are held here.", "peer"
        )
        self._omissions = self._counter(
            "watch_omissions",
            "Envelopes that a node left out for a stranger, although it served later ones.",
            "peer",
        )
        self._dependencies = self._gauge(
            "dependencies_waiting", "Envelopes of other nodes that name what is not held here yet."
        )
        self._dropped = self._counter(
            "dependencies_dropped", "Envelopes among them that were forgotten for newer ones."
        )
        self._peer_streams = self._gauge("peer_streams_open", "Streams of other nodes' envelopes.")
        self._unreachable = self._gauge("peers_unreachable", "Nodes that do not answer.")
        self._publishes = self._counter(
            "publishes", "Requests to publish, by outcome: stored, or gRPC's code.", "outcome"
        )
        # Each label is known from the start: Prometheus sees no increase from nothing to 1.
        for outcome in (STORED, "unavailable", "resource_exhausted", "cancelled"):
            self._publishes.labels(outcome)
        self._publish_seconds = self._histogram(
            "publish_seconds", "From a request to publish to its commit.", _SECONDS
        )
        self._batch = self._histogram(
            "sequencer_batch_envelopes", "Envelopes of one transaction.", _ENVELOPES
        )
        self._batch_seconds = self._histogram(
            "sequencer_batch_seconds", "From the envelopes' time to their commit.", _SECONDS
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def refused(self, method: str, code: str) -> None:
        """Record a refused call."""
        self._refusals.labels(method, code).inc()

    def refused_token(self, fault: TokenFault) -> None:
        """Record a node's token that was refused."""
        self._refused_tokens.labels(fault.value).inc()

    def said_ready(self, is_ready: bool) -> None:
        """Record what health checks answer from now on."""
        self._ready.set(is_ready)

    def said_updates_waiting(self, count: int) -> None:
        """Record how many identity updates wait for an answer from now on."""
        self.updates_waiting = count
        self._waiting.set(count)

    def knows_clock(self, wrong: Callable[[], str | None]) -> None:
        """Take how to ask what is wrong with the clock, at each scrape."""
        self._clock.set_function(lambda: float(wrong() is not None))

    def knows_registry(self, state: Callable[[], RegistryState]) -> None:
        """Take how to ask what the registry says of this node, at each scrape."""
        for each in RegistryState:
            self._registry_state.labels(each).set_function(partial(_is, each, state))

    def knows_own_log(self, waits: Callable[[], bool]) -> None:
        """Take how to ask whether the own log is waited for, at each scrape."""
        self._own_log.set_function(lambda: float(waits()))

    def knows_space(self, space: StorageSpace) -> None:
        """Take how to ask how much space is free, at each scrape."""

        def free() -> float:
            found = space.free_bytes()
            return math.nan if found is None else float(found)

        self._free.set_function(free)
        self._short.set_function(lambda: float(space.short() is not None))

    def knows_payer_reports(
        self, standing: Callable[[], Standing], clock_ns: Callable[[], int]
    ) -> None:
        """Take how to ask how payer reports stand, at each scrape, and a clock from 1970."""

        def seconds() -> float:
            waits = standing().unattested
            nanoseconds = 0 if waits is None else max(clock_ns() - waits.stored_ns, 0)
            return nanoseconds / NANOSECONDS_PER_SECOND

        self._refused_reports.set_function(lambda: float(standing().refused))
        self._unattested.set_function(seconds)

    def knows_twin(self, wrong: Callable[[], str | None]) -> None:
        """Take how to ask for the sign of another process with this node's key, at each scrape."""
        self._twin.set_function(lambda: float(wrong() is not None))

    def knows_certificate(self, seconds_left: Callable[[], float]) -> None:
        """Take for how long others take this node's certificate; a node without TLS has none."""
        text = "Seconds for which others take the node's own certificate; 0 where they refuse it."
        self._gauge("certificate_seconds_left", text).set_function(seconds_left)

    def knows_accusations(self, new_proofs: Callable[[], int]) -> None:
        """Take how to count what other nodes newly prove about this one, at each scrape."""
        self._accusations.set_function(new_proofs)

    def knows_lag(self, seconds: Callable[[], float]) -> None:
        """Take how late the event loop is, at each scrape."""
        self._lag.set_function(seconds)

    def counts_streams(self, count: Callable[[], int]) -> None:
        """Take how to count the open streams, at each scrape."""
        self._open.set_function(count)

    def counts_node_streams(self, count: Callable[[], int]) -> None:
        """Take how to count the streams that other nodes have open here."""
        self.node_streams = count
        self._of_nodes.set_function(count)

    def counts_peers(self, open_streams: Callable[[], int], unreachable: Callable[[], int]) -> None:
        """Take how to count streams of other nodes and those that do not answer, at each scrape."""
        self._peer_streams.set_function(open_streams)
        self._unreachable.set_function(unreachable)

    def replicated(self, originator_id: int, taken: Taken) -> None:
        """Record a batch of another node's envelopes."""
        for kind, count in taken.envelopes.items():
            self._replicated.labels(originator_id, kind).inc(count)
        self._gaps.inc(taken.gaps)

    def repaired(self, repair: Repair) -> None:
        """Record what a comparison with another node brought."""
        stored = repair.taken.new + repair.taken.late
        self._repaired.labels(repair.originator_id, "missing").inc(stored)
        self._repaired.labels(repair.originator_id, "differing").inc(repair.taken.disputed)

    def counts_dependencies(self, waiting: Callable[[], int]) -> None:
        """Take how to count envelopes that name what is not held, at each scrape."""
        self._dependencies.set_function(waiting)

    def dropped_dependency(self) -> None:
        """Record such an envelope that was forgotten for a newer one."""
        self._dropped.inc()

    def watched(self, watched: Watched) -> None:
        """Record an answer that a node gave to a stranger."""
        found = watched.findings
        self._watched.labels(watched.peer_id).inc(found.compared)
        self._differing.labels(watched.peer_id).inc(len(found.inconsistent) + len(found.differing))
        self._omissions.labels(watched.peer_id).inc(len(found.omitted))

    def fell_behind(self) -> None:
        """Record a stream that has to read the database again."""
        self._behind.inc()

    def sent(self, method: str, envelopes: int) -> None:
        """Record envelopes that a method hands to a reader."""
        self._sent.labels(method).inc(envelopes)

    def published(self, outcome: str, seconds: float) -> None:
        """Record a request to publish that took so long; of stored ones, the time is kept."""
        self._publishes.labels(outcome).inc()
        if outcome == STORED:
            self._publish_seconds.observe(seconds)

    def committed(self, rows: Sequence[StoredEnvelope], now_ns: int) -> None:
        """Record a sequencer's transaction, which has just been committed."""
        self._batch.observe(len(rows))
        if rows:
            # An envelope's time is ahead of a clock that was set back.
            nanoseconds = max(now_ns - rows[0].originator_ns, 0)
            self._batch_seconds.observe(nanoseconds / NANOSECONDS_PER_SECOND)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(f"{_PREFIX}_{name}", text, buckets=buckets, registry=self._registry)


def _is(state: RegistryState, found: Callable[[], RegistryState]) -> float:
    return float(found() is state)
