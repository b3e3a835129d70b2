"""A process that only reads: it serves what another one commits to the same PostgreSQL.

A thread waits for commits and tells the hub; readers are served from an event loop, as by a node.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass
from typing import Final

import grpc

from chainkit.errors import StoreError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_indexer.storage.store import Store
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.feed import DatabaseFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.peers.directory import NodeDirectory
from chainkit_node.peers.newest import NewestListing
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from chainkit_node.reporting.shelf import ReportShelf
from chainkit_node.serving.api import api_methods
from chainkit_node.serving.callers import Peers
from chainkit_node.serving.forwarding import Forwarder
from chainkit_node.serving.gate import server_bounds
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reader_health import ReaderHealth
from chainkit_node.serving.readiness import Readiness
from chainkit_node.serving.reports import MisbehaviorApi
from chainkit_node.serving.server import NodeServer, ended_by_signals
from chainkit_node.settings import NodeLimits, ServingLimits, StrangerLimits
from chainkit_node.watched_thread import WatchedThread

LOOK_SECONDS: Final = 5.0
"""After how long without a notification the database is looked at all the same."""

_SLICE_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ReaderService:
    """Everything that a reading process needs, opened by its command line."""

    store: Store
    metrics: NodeMetrics
    health: ReaderHealth
    limits: ServingLimits
    strangers: StrangerLimits
    nodes: NodeLimits
    report_rate: ReportRate
    address: str
    """``HOST:PORT`` for gRPC; port 0 takes a free one."""
    certificate: grpc.ServerCredentials | None
    """None serves in plain text."""
    shares_port: bool
    """Other processes of the same node listen at the address, too."""
    writer_url: str
    """Where requests are passed on to that make the node sign."""


async def run_reader(service: ReaderService) -> None:
    """Serve until SIGINT or SIGTERM comes, or the follower ends with an error, which is raised.

    Raises StoreError where the database is no node's.
    """
    loop, ended = asyncio.get_running_loop(), ended_by_signals()
    hub, handover, log = Hub(), Handover(loop), EnvelopeLog(service.store)
    forwarder = Forwarder(service.writer_url)
    metrics = service.metrics
    shelf = ReportShelf(service.store, ReportBounds())
    submit = forwarder.submit_misbehavior_report
    reports = MisbehaviorApi(shelf, submit, service.report_rate, metrics.reports)
    publish = forwarder.publish_payer_envelopes
    heads = forwarder.query_topic_heads
    methods = api_methods(log, hub, publish, heads, reports, service.limits, metrics)
    newest = NewestListing(NodeDirectory(service.store, time.monotonic).listing, ended.set)
    peers = Peers(newest.listing, time.time, metrics.refused_token)
    bounds = server_bounds(
        service.strangers, service.nodes, peers, metrics.refused, shares_port=service.shares_port
    )
    server = NodeServer(methods, bounds, metrics)
    feed = DatabaseFeed(log, hub, handover)
    follower = CommitFollower(service.store, feed, service.health, Readiness(server.tell_ready))
    thread = WatchedThread("commits", follower.run, lambda: loop.call_soon_threadsafe(ended.set))
    try:
        await newest.start()
        await server.start(service.address, service.certificate, "reading process of a node")
        thread.start()
        await ended.wait()
    finally:
        await server.stop()
        follower.stop()
        await asyncio.to_thread(thread.finish)
        await forwarder.close()
        shelf.close()
        log.close()
        await newest.finish()
    thread.raise_error()


class CommitFollower:
    """Waits for commits, and has the feed look; a database that is away is asked again."""

    def __init__(
        self, store: Store, feed: DatabaseFeed, health: ReaderHealth, readiness: Readiness
    ) -> None:
        """Take the database, who looks, and whom to tell whether it answers."""
        self._store = store
        self._feed = feed
        self._health = health
        self._readiness = readiness
        self._ends = threading.Event()

    def stop(self) -> None:
        """Let ``run`` end soon; from any thread."""
        self._ends.set()

    def run(self) -> None:
        """Follow until ``stop``."""
        looked_at = float("-inf")
        while not self._ends.is_set():
            try:
                came = self._store.wait_for_commit(_SLICE_SECONDS)
                if came or time.monotonic() - looked_at >= LOOK_SECONDS:
                    self._feed.look()
                    looked_at = time.monotonic()
                    self._health.answered()
                    self._readiness.say(True)
            except StoreError as error:
                if self._readiness.say(False):
                    event = LogEvent("database_unavailable", str(error), level=logging.WARNING)
                    log_event(event)
                self._ends.wait(_PAUSE_SECONDS)
