"""A process that only reads: it serves what another process commits to the same PostgreSQL.

A thread waits for commits and notifies the hub; an event loop serves readers, as in a node.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from chainkit.errors import StoreError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.process import ended_by_signals
from chainkit_indexer.storage.store import Store
from chainkit_node.closing_steps import ClosingSteps
from chainkit_node.live.feed import DatabaseFeed
from chainkit_node.peers.work import end_all
from chainkit_node.process import (
    ServingSettings,
    SigningMethods,
    build_server,
    open_log,
    own_certificate,
)
from chainkit_node.serving.forwarding import Forwarder
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.reader_health import ReaderHealth
from chainkit_node.serving.readiness import Readiness
from chainkit_node.watched_thread import WatchedThread

LOOK_SECONDS: Final = 5.0
"""Seconds without a notification, after which the database is read anyway."""

_SLICE_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ReaderService:
    """Everything that a reading process needs, opened by its command line."""

    store: Store
    metrics: NodeMetrics
    health: ReaderHealth
    serving: ServingSettings
    writer_url: str
    """The process to which requests that need the node's signature are forwarded."""


async def run_reader(service: ReaderService) -> None:
    """Serve until SIGINT or SIGTERM comes, or the follower ends with an error, which is raised.

    Raises StoreError where the database is no node's.
    """
    loop, ended, serving = asyncio.get_running_loop(), ended_by_signals(), service.serving
    async with ClosingSteps() as steps:
        opened = open_log(service.store, service.metrics, ended, steps)
        forwarder = Forwarder(service.writer_url, service.metrics)
        steps.add(forwarder.close)
        methods = SigningMethods(
            forwarder.publish_payer_envelopes,
            forwarder.query_topic_heads,
            forwarder.submit_misbehavior_report,
        )
        server = build_server(opened, methods, serving)
        certificate = asyncio.create_task(own_certificate(serving, opened).run())
        looking = asyncio.create_task(forwarder.look())
        steps.add(partial(end_all, [certificate, looking]))
        feed = DatabaseFeed(opened.log, opened.hub, opened.handover)
        readiness = Readiness(server.set_ready)
        follower = CommitFollower(service.store, feed, service.health, readiness)
        thread = WatchedThread(
            "commits", follower.run, lambda: loop.call_soon_threadsafe(ended.set)
        )
        steps.add(thread.finish)
        steps.add(follower.stop)
        # The server stops before all other parts: an open call still gets its answer.
        steps.add(server.stop)
        await opened.newest.start()
        await server.start(serving.address, serving.certificate, "reading process of a node")
        thread.start()
        await ended.wait()
        thread.raise_error()


class CommitFollower:
    """Waits for commits, and has the feed read; a database that is away is asked again."""

    def __init__(
        self, store: Store, feed: DatabaseFeed, health: ReaderHealth, readiness: Readiness
    ) -> None:
        """Take the database, the feed, and the two that record whether the database answers."""
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
        looked_at, is_away = float("-inf"), False
        while not self._ends.is_set():
            try:
                came = self._store.wait_for_commit(_SLICE_SECONDS)
                if came or time.monotonic() - looked_at >= LOOK_SECONDS:
                    self._feed.look()
                    looked_at = time.monotonic()
                    self._health.answered()
                    self._readiness.say(True)
                    if is_away:
                        log_event(LogEvent("recovered", "the database answers again"))
                    is_away = False
            except StoreError as error:
                if not is_away:
                    event = LogEvent("database_unavailable", str(error), level=logging.WARNING)
                    log_event(event)
                is_away = True
                self._readiness.say(False)
                self._ends.wait(_PAUSE_SECONDS)
