"""The node as a service: the indexer in one thread, the sequencer in another, readers on a loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from chainkit.chain.heads import HeadWatcher
from chainkit.service.process import ended_by_signals
from chainkit.signatures import SigningKey
from chainkit_indexer.follow.loop import Observer, StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.service.opening import Following
from chainkit_indexer.service.run import follow_chain
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_last
from chainkit_node.closing_steps import ClosingSteps
from chainkit_node.inboxes.contract_wallets import ContractWallets
from chainkit_node.inboxes.follower import InboxFollower
from chainkit_node.inspection.chain_view import ChainView
from chainkit_node.inspection.live import Checks, LiveView
from chainkit_node.inspection.page import StatusPage
from chainkit_node.live.feed import ChainFeed
from chainkit_node.looks import Remembered, WhereChanged
from chainkit_node.network_tasks import NetworkTasks
from chainkit_node.originating.clock_check import ClockCheck
from chainkit_node.originating.freshness import ChainFreshness
from chainkit_node.originating.last_refusal import LastRefusal
from chainkit_node.originating.payers import PayerLimiter
from chainkit_node.originating.publisher import Originator, Publisher
from chainkit_node.originating.registration import Registration
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.originating.storage_keeper import StorageKeeper
from chainkit_node.originating.storage_space import StorageSpace
from chainkit_node.originating.topic_heads import TopicHeads
from chainkit_node.originating.twin import TwinCheck
from chainkit_node.process import (
    OpenedLog,
    ServingSettings,
    SigningMethods,
    build_server,
    open_log,
    own_certificate,
)
from chainkit_node.repairing.range_keeper import RangeKeeper
from chainkit_node.reporting.writer import ReportWriter
from chainkit_node.serving.heads import TopicHeadsHandler
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.publishing import PublishHandler
from chainkit_node.serving.readiness import Readiness
from chainkit_node.serving.reports import SubmitReportHandler
from chainkit_node.serving.server import NodeServer
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
    serving: ServingSettings
    watch_seconds: float
    """Between two rounds of the watchdog with the same node; 0 for none."""
    report_seconds: float
    """How long an envelope waits for a payer report; 0 for no reports."""


async def run_node(service: NodeService) -> None:
    """Serve until SIGINT or SIGTERM comes, or the indexer ends with an error, which is raised."""
    ended, metrics = ended_by_signals(), NodeMetrics()
    service.monitor.also_reports(metrics.text)
    async with ClosingSteps() as steps:
        opened = open_log(service.follows.store, metrics, ended, steps)
        clock, twin = _clock_check(service, opened), _twin_check(service, opened)
        certificate = own_certificate(service.serving, opened)
        writer = ReportWriter(
            opened.store,
            opened.directory,
            service.key,
            metrics.reports,
            opened.bounds,
            clock.latest_ns,
            opened.lag.delays,
        )
        steps.add(writer.close)
        network = NetworkTasks(
            opened,
            service.key,
            service.record,
            writer,
            clock,
            twin,
            service.watch_seconds,
            service.report_seconds,
        )
        steps.add(network.close)
        freshness = ChainFreshness(time.monotonic)
        space = StorageSpace(opened.store.free_bytes, service.serving.storage)
        metrics.knows_space(space)
        keeper = StorageKeeper(opened.store, space, time.time, metrics.storage.looked)
        checks = Checks(clock, twin, certificate, space, LastRefusal())
        methods = _signing_methods(service, opened, network, checks, writer, freshness, steps)
        server = build_server(opened, methods, service.serving, twin.was_shown)
        indexer = _indexer(service, opened, (freshness, clock, space), server, ended)
        steps.add(indexer.finish)
        page = _status_page(service, opened, network, checks)
        steps.add(page.close)
        # The indexer ends its step while the page waits for a look that has begun.
        steps.add(lambda: setattr(service.stop, "is_set", True))
        # The server stops before all other parts: an open call still gets its answer.
        steps.add(server.stop)
        await opened.newest.start()
        serving = service.serving
        await server.start(serving.address, serving.certificate, "node for readers and payers")
        indexer.start()
        tasks = opened.lag.run(), certificate.run(), keeper.run()
        await _until(ended, *tasks, *network.coroutines())
        indexer.raise_error()


def _clock_check(service: NodeService, opened: OpenedLog) -> ClockCheck:
    """Return the check, which ``/readyz`` and the metrics show."""

    def last_own_ns() -> int:
        own_id = opened.directory.listing().own_id
        if own_id is None:
            return 0
        with opened.store.reading() as connection:
            last = read_last(connection, own_id)
        return 0 if last is None else last[1]

    health = service.monitor.health
    remembered = Remembered(opened.store, last_own_ns)
    clock = ClockCheck(remembered, trusts_blocks=health.limits.stale_seconds > 0)
    health.also_checks(clock.readiness)
    opened.metrics.knows_clock(clock.wrong)
    return clock


def _twin_check(service: NodeService, opened: OpenedLog) -> TwinCheck:
    """Return the check, which ``/readyz`` and the metrics show."""
    twin = TwinCheck(lambda: opened.newest.listing().own_id, time.time_ns, time.monotonic)
    service.monitor.health.also_checks(twin.readiness)
    opened.metrics.knows_twin(twin.wrong)
    return twin


def _signing_methods(
    service: NodeService,
    opened: OpenedLog,
    network: NetworkTasks,
    checks: Checks,
    writer: ReportWriter,
    freshness: ChainFreshness,
    steps: ClosingSteps,
) -> SigningMethods:
    """Start publisher and sequencer; the publisher closes first, as it feeds the sequencer."""
    metrics, limits = opened.metrics, service.serving.limits

    def publish(rows: Sequence[StoredEnvelope]) -> None:
        checks.twin.signed(row.sequence_id for row in rows)
        metrics.committed(rows, time.time_ns())
        opened.publish(rows)

    def may_originate() -> None:
        network.check_own_log()
        network.ungiven.check()
        checks.clock.check()

    registration = Registration(opened.directory, may_originate)
    # A head has no time: the clock does not matter.
    for_heads = Registration(opened.directory, network.check_own_log)
    sequencer = Sequencer(
        opened.store,
        registration.node_id,
        service.key,
        time.time_ns,
        publish,
        service.record,
        network.own_log.fell_back,
    )
    steps.add(sequencer.close)
    payers = PayerLimiter(service.serving.payers, time.monotonic)
    named = network.ungiven.named_on
    publisher = Publisher(
        Originator(opened.log, sequencer, registration, freshness, checks.space, payers, named)
    )
    steps.add(publisher.close)
    signer = TopicHeads(for_heads.node_id, service.key, checks.twin.signs_head)
    heads = TopicHeadsHandler(opened.log, signer, limits)
    reports = SubmitReportHandler(writer, opened.handover, opened.bounds, metrics.reports)
    return SigningMethods(
        PublishHandler(
            publisher,
            opened.handover,
            limits,
            metrics,
            opened.lag.seconds,
            checks.refusals,
        ).publish_payer_envelopes,
        heads.query_topic_heads,
        reports.submit_misbehavior_report,
    )


def _status_page(
    service: NodeService, opened: OpenedLog, network: NetworkTasks, checks: Checks
) -> StatusPage:
    view = LiveView(
        asyncio.get_running_loop(),
        network.replicator,
        network.repairer,
        network.own_log,
        network.about_self,
        checks,
        opened.lag,
        opened.hub,
        opened.metrics.node_streams,
        network.repairs,
        ChainView(service.follows.pool, service.monitor, lambda: opened.metrics.updates_waiting),
        time.monotonic,
        started_at=time.monotonic(),
    )
    page = StatusPage(opened.store, view)
    service.monitor.also_serves(page.paths())
    return page


def _indexer(
    service: NodeService,
    opened: OpenedLog,
    watching: Sequence[Observer],
    server: NodeServer,
    ended: asyncio.Event,
) -> WatchedThread:
    loop = asyncio.get_running_loop()
    waiting = opened.metrics.said_updates_waiting
    inboxes = InboxFollower(opened.store, opened.log, service.wallets.at, waiting)
    # In this order: GetInboxIds knows an update before a stream sends the update.
    observers: tuple[Observer, ...] = (
        WhereChanged(opened.store, inboxes, lambda: inboxes.has_waiting),
        WhereChanged(opened.store, ChainFeed(opened.log, opened.hub, opened.handover)),
        *watching,
        Readiness(server.set_ready),
        WhereChanged(opened.store, RangeKeeper(opened.store)),
    )
    return WatchedThread(
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


async def _until(ended: asyncio.Event, *coroutines: Coroutine[Any, Any, None]) -> None:
    """Run tasks until the event is set. An error ends all tasks, and is raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in coroutines]
        await ended.wait()
        for task in tasks:
            task.cancel()
