"""The parts of every process of a node, both of one that signs and of one that only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from chainkit.service.certificate import CertificateFiles, ServerCertificate
from chainkit.service.edge.configuration import EdgeTimes
from chainkit.service.edge.launch import Edge
from chainkit.service.grpc_methods import Unary
from chainkit.service.open_files import within_open_files
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_indexer.storage.store import Store
from chainkit_node.closing_steps import ClosingSteps
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.loop_lag import LoopLag
from chainkit_node.peers.directory import NodeDirectory
from chainkit_node.peers.newest import NewestListing
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from chainkit_node.reporting.reader import ReportReader
from chainkit_node.serving.api import api_methods
from chainkit_node.serving.callers import Peers
from chainkit_node.serving.edge import edge_limits
from chainkit_node.serving.gate import server_bounds
from chainkit_node.serving.http_paths import http_paths
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reports import MisbehaviorApi
from chainkit_node.serving.server import NodeServer
from chainkit_node.settings import (
    NodeLimits,
    PayerLimits,
    ServingLimits,
    StorageLimits,
    StrangerLimits,
)
from chainkit_node.watching.own_certificate import OwnCertificate


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """The address that a process serves, and the limits of its callers."""

    strangers: StrangerLimits
    nodes: NodeLimits
    payers: PayerLimits
    storage: StorageLimits
    report_rate: ReportRate
    address: str
    """``HOST:PORT`` for gRPC; port 0 takes a free one."""
    certificate: ServerCertificate | None
    """None serves in plain text."""
    certificate_files: CertificateFiles | None
    """Where the certificate is from, which the node checks as others do."""
    shares_port: bool = False
    """Other processes of the same node listen at the address, too."""
    limits: ServingLimits = field(default_factory=ServingLimits)
    edge_times: EdgeTimes = field(default_factory=EdgeTimes)

    def edge(self) -> Edge:
        """Return where and how Envoy listens."""
        limits = edge_limits(self.strangers, self.nodes, self.edge_times)
        return Edge(self.address, self.certificate, limits, self.shares_port, http_paths())


@dataclass(frozen=True, slots=True)
class SigningMethods:
    """Methods that sign the answer, or store what the caller sends."""

    publish: Unary
    topic_heads: Unary
    submit_report: Unary


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """The database as readers see it, and the streams of each commit."""

    store: Store
    log: EnvelopeLog
    directory: NodeDirectory
    newest: NewestListing
    bounds: ReportBounds
    report_reader: ReportReader
    hub: Hub
    handover: Handover
    metrics: NodeMetrics
    lag: LoopLag

    def publish(self, rows: Sequence[StoredEnvelope]) -> None:
        """Send streams the envelopes with the newest sequence ids; from any thread."""
        self.handover.call(self.hub.publish, rows)

    def insert(self, rows: Sequence[StoredEnvelope]) -> None:
        """Send streams the envelopes that filled a gap; from any thread."""
        self.handover.call(self.hub.insert, rows)


def open_log(
    store: Store, metrics: NodeMetrics, ended: asyncio.Event, steps: ClosingSteps
) -> OpenedLog:
    """Open the database and the streams; call this on the event loop's thread.

    ``ended`` is set where the listing of nodes is no longer read. The listing closes last: parts
    that still run read it.
    """
    directory = NodeDirectory(store, time.monotonic)
    newest = NewestListing(directory.listing, ended.set)
    steps.add(newest.finish)
    log = EnvelopeLog(store)
    steps.add(log.close)
    bounds = ReportBounds()
    reader = ReportReader(store, bounds)
    steps.add(reader.close)
    handover, lag = Handover(asyncio.get_running_loop()), LoopLag()
    metrics.knows_lag(lag.seconds)
    return OpenedLog(store, log, directory, newest, bounds, reader, Hub(), handover, metrics, lag)


def own_certificate(settings: ServingSettings, opened: OpenedLog) -> OwnCertificate:
    """Return the check of the node's own certificate, which the metrics show."""
    certificate = OwnCertificate(settings.certificate_files, opened.newest.listing)
    if settings.certificate_files is not None:
        opened.metrics.knows_certificate(certificate.seconds_left)
    return certificate


def build_server(
    opened: OpenedLog,
    signing: SigningMethods,
    settings: ServingSettings,
    own_tokens: Callable[[str, int], None] = lambda text, issued_at: None,
) -> NodeServer:
    """Return the server of all methods; it does not listen yet.

    ``own_tokens`` gets each token of this node itself, and when it was issued.
    """
    log, hub, limits, metrics = opened.log, opened.hub, settings.limits, opened.metrics
    publish, heads, submit = signing.publish, signing.topic_heads, signing.submit_report
    reports = MisbehaviorApi(opened.report_reader, submit, settings.report_rate, metrics.reports)
    methods = api_methods(log, hub, publish, heads, reports, limits, metrics)
    peers = Peers(opened.newest.listing, time.time, metrics.refused_token, own_tokens)
    connections = within_open_files(settings.strangers.connections)
    bounds = server_bounds(
        replace(settings.strangers, connections=connections),
        settings.nodes,
        peers,
        metrics.refused,
        counts_nodes=metrics.counts_node_streams,
    )
    return NodeServer(methods, bounds, metrics)
