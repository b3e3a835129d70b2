"""The node as a service: the indexer in one thread, the sequencer in another, readers on a loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from chainkit.chain import HeadWatcher
from chainkit.signatures import SigningKey
from chainkit_indexer.follow.loop import StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.service.opening import Following
from chainkit_indexer.service.run import follow_chain
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.contract_wallets import ContractWallets
from chainkit_node.inboxes.follower import InboxFollower
from chainkit_node.inspection.live import LiveView
from chainkit_node.inspection.page import StatusPage
from chainkit_node.live.feed import ChainFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.network import NetworkMeans, NetworkWorks
from chainkit_node.originating.freshness import ChainFreshness
from chainkit_node.originating.publisher import Originator, Publisher
from chainkit_node.originating.registration import Registration
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.originating.topic_heads import TopicHeads
from chainkit_node.peers.directory import NodeDirectory
from chainkit_node.peers.newest import NewestListing
from chainkit_node.repairing.range_keeper import RangeKeeper
from chainkit_node.reporting.book import ReportBook
from chainkit_node.reporting.bounds import ReportBounds, ReportRate
from chainkit_node.reporting.shelf import ReportShelf
from chainkit_node.serving.api import api_methods
from chainkit_node.serving.callers import Peers
from chainkit_node.serving.gate import server_bounds
from chainkit_node.serving.heads import HeadDesk
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.publishing import PayerDesk
from chainkit_node.serving.readiness import Readiness
from chainkit_node.serving.reports import MisbehaviorApi, ReportDesk
from chainkit_node.serving.server import NodeServer, ended_by_signals
from chainkit_node.settings import NodeLimits, ServingLimits, StrangerLimits
from chainkit_node.watched_thread import WatchedThread


@dataclass(frozen=True, slots=True)
class NodeService:
    """Everything that a running node needs, opened by its command line."""

    follows: Following
    heads: HeadWatcher
    registry_urls: Sequence[str]
    key: SigningKey
    wallets: ContractWallets
    record: SequenceRecord | None
    stop: StopRequest
    monitor: Monitor
    limits: ServingLimits
    strangers: StrangerLimits
    nodes: NodeLimits
    report_rate: ReportRate
    watch_seconds: float
    """Between two rounds of the watchdog with the same node; 0 for none."""
    address: str
    """``HOST:PORT`` for gRPC; port 0 takes a free one."""
    certificate: grpc.ServerCredentials | None
    """None serves in plain text."""


async def run_node(service: NodeService) -> None:
    """Serve until SIGINT or SIGTERM comes, or the indexer ends with an error, which is raised."""
    loop, ended = asyncio.get_running_loop(), ended_by_signals()
    store, hub, handover = service.follows.store, Hub(), Handover(loop)
    log = EnvelopeLog(store)
    freshness = ChainFreshness(time.monotonic)
    metrics = NodeMetrics()
    service.monitor.also_reports(metrics.text)

    def publish(rows: Sequence[StoredEnvelope]) -> None:
        metrics.committed(rows, time.time_ns())
        handover.call(hub.publish, rows)

    directory = NodeDirectory(store, time.monotonic)
    newest = NewestListing(directory.listing, ended.set)

    def publish_replicated(new: Sequence[StoredEnvelope], late: Sequence[StoredEnvelope]) -> None:
        if new:
            handover.call(hub.publish, new)
        if late:
            handover.call(hub.insert, late)

    bounds = ReportBounds()
    book = ReportBook(store, directory, service.key, metrics.reports, bounds)
    network = NetworkWorks(
        NetworkMeans(store, log, directory, newest, service.key, service.record, book, metrics),
        publish_replicated,
        service.watch_seconds,
    )
    view = LiveView(
        loop,
        network.replicator,
        network.repairer,
        network.own_log,
        hub,
        network.repairs,
        service.monitor.health,
        time.monotonic,
        started_at=time.monotonic(),
    )
    page = StatusPage(store, view)
    service.monitor.also_serves(page.paths())
    registration = Registration(directory, network.own_log.check)
    sequencer = Sequencer(
        store, registration.node_id, service.key, time.time_ns, publish, service.record
    )
    publisher = Publisher(Originator(log, sequencer, registration, freshness))
    desk = PayerDesk(publisher, handover, service.limits, metrics)
    shelf = ReportShelf(store, bounds)
    submit = ReportDesk(book, handover, bounds, metrics.reports).submit_misbehavior_report
    reports = MisbehaviorApi(shelf, submit, service.report_rate, metrics.reports)
    publish_paid = desk.publish_payer_envelopes
    heads = HeadDesk(log, TopicHeads(registration.node_id, service.key), service.limits)
    methods = api_methods(
        log, hub, publish_paid, heads.query_topic_heads, reports, service.limits, metrics
    )
    peers = Peers(newest.listing, time.time, metrics.refused_token)
    bounds_of_callers = server_bounds(service.strangers, service.nodes, peers, metrics.refused)
    server = NodeServer(methods, bounds_of_callers, metrics)
    inboxes = InboxFollower(store, log, service.wallets.at, metrics.said_updates_waiting)
    # In this order: an update that a stream tells of is known to GetInboxIds.
    chain_feed = ChainFeed(log, hub, handover)
    observers = (
        *(inboxes, chain_feed, freshness, Readiness(server.tell_ready)),
        RangeKeeper(store),
    )
    indexer = WatchedThread(
        "indexer",
        lambda: follow_chain(
            service.follows,
            service.heads,
            service.registry_urls,
            service.stop,
            service.monitor,
            observers=observers,
        ),
        lambda: loop.call_soon_threadsafe(ended.set),
    )
    try:
        await newest.start()
        await server.start(service.address, service.certificate, "node for readers and payers")
        indexer.start()
        await _until(ended, *network.works())
    finally:
        await server.stop()
        service.stop.is_set = True
        await asyncio.to_thread(page.close)
        await asyncio.to_thread(indexer.finish)
        await asyncio.to_thread(publisher.close)
        await asyncio.to_thread(sequencer.close)
        await asyncio.to_thread(network.close)
        await asyncio.to_thread(book.close)
        shelf.close()
        log.close()
        await newest.finish()
    indexer.raise_error()


async def _until(ended: asyncio.Event, *works: Coroutine[Any, Any, None]) -> None:
    """Do works until the event is set. An error ends them all, and is raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in works]
        await ended.wait()
        for task in tasks:
            task.cancel()
