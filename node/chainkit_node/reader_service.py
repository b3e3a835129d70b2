"""A process that only reads: it serves what another one commits to the same PostgreSQL.

A thread waits for commits and tells the hub; readers are served from an event loop, as by a node.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import grpc
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from chainkit.errors import StoreError
from chainkit.service.grpc_server import GrpcServer
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.monitor_server import Answer
from chainkit_indexer.storage.store import Store
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.live.feed import DatabaseFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.serving.api import SERVICES, api_methods
from chainkit_node.serving.forwarding import Forwarder
from chainkit_node.serving.gate import server_bounds
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.settings import ServingLimits, StrangerLimits

LOOK_SECONDS: Final = 5.0
"""After how long without a notification the database is looked at all the same."""

STALE_SECONDS: Final = 15.0
"""Seconds without an answer of the database, after which the process is not ready."""

_SLICE_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class ReaderService:
    """Everything that a reading process needs, opened by its command line."""

    store: Store
    metrics: NodeMetrics
    pulse: Pulse
    limits: ServingLimits
    strangers: StrangerLimits
    address: str
    """``HOST:PORT`` for gRPC; port 0 takes a free one."""
    certificate: grpc.ServerCredentials | None
    """None serves in plain text."""
    shares_port: bool
    """Other processes of the same node listen at the address, too."""
    writer_url: str
    """Where payers' requests are passed on to."""


class Pulse:
    """When the database last answered; written by one thread, read by others."""

    def __init__(self, metrics: NodeMetrics, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a database that has not answered; the clock is in seconds."""
        self._metrics = metrics
        self._clock = clock
        self._answered_at = float("-inf")

    def answered(self) -> None:
        """Take note of an answer."""
        self._answered_at = self._clock()

    def paths(self) -> Mapping[str, Callable[[], Answer]]:
        """Return the answers of ``/metrics``, ``/healthz`` and ``/readyz``."""
        return {"/metrics": self._text, "/healthz": self._healthz, "/readyz": self._readyz}

    def _text(self) -> Answer:
        return Answer(200, CONTENT_TYPE_PLAIN_0_0_4, self._metrics.text())

    def _healthz(self) -> Answer:
        return Answer.of_json(True, {"alive": True})

    def _readyz(self) -> Answer:
        seconds = self._clock() - self._answered_at
        is_ready = seconds <= STALE_SECONDS
        check: dict[str, Any] = {"ok": is_ready, "limit": STALE_SECONDS, "unit": "seconds"}
        if seconds != float("inf"):
            check["value"] = round(seconds, 1)
        return Answer.of_json(is_ready, {"ready": is_ready, "checks": {"database_age": check}})


async def run_reader(service: ReaderService) -> None:
    """Serve until SIGINT or SIGTERM comes. Raises StoreError where the database is no node's."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    hub, handover, log = Hub(), Handover(loop), EnvelopeLog(service.store)
    forwarder = Forwarder(service.writer_url)
    metrics = service.metrics
    publish = forwarder.publish_payer_envelopes
    methods = api_methods(log, hub, publish, service.limits, metrics)
    bounds = server_bounds(service.strangers, metrics.refused, shares_port=service.shares_port)
    server = GrpcServer(methods, SERVICES, bounds)

    def tell(is_ready: bool) -> None:
        metrics.said_ready(is_ready)
        asyncio.run_coroutine_threadsafe(server.say_ready(is_ready), loop)

    feed = DatabaseFeed(log, hub, handover)
    follower = _FollowerThread(service, feed, tell)
    try:
        port = await server.start(service.address, service.certificate)
        await server.say_ready(False)
        host = service.address.rpartition(":")[0]
        how = "plain text" if service.certificate is None else "TLS"
        text = f"reading process of a node at {host}:{port} (gRPC, {how})"
        log_event(LogEvent("node_listening", text, {"port": port}))
        gc.freeze()
        follower.start()
        await ended.wait()
    finally:
        await server.stop(_GRACE_SECONDS)
        await asyncio.to_thread(follower.finish)
        await forwarder.close()
        log.close()


class _FollowerThread:
    """Waits for commits, and has the feed look."""

    def __init__(
        self, service: ReaderService, feed: DatabaseFeed, tell: Callable[[bool], None]
    ) -> None:
        self._store = service.store
        self._pulse = service.pulse
        self._feed = feed
        self._tell = tell
        self._is_ready = False
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commits")

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        looked_at = float("-inf")
        while not self._ends.is_set():
            try:
                came = self._store.wait_for_commit(_SLICE_SECONDS)
                if came or time.monotonic() - looked_at >= LOOK_SECONDS:
                    self._feed.look()
                    looked_at = time.monotonic()
                    self._pulse.answered()
                    self._say(True)
            except StoreError as error:
                if self._is_ready:
                    level = logging.WARNING
                    log_event(LogEvent("database_unavailable", str(error), level=level))
                self._say(False)
                self._ends.wait(_PAUSE_SECONDS)

    def _say(self, is_ready: bool) -> None:
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            self._tell(is_ready)
