"""The node as a service: the indexer in one thread, the sequencer in another, readers on a loop."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from chainkit.chain import HeadWatcher
from chainkit.service.grpc_server import GrpcServer
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.signatures import SigningKey
from chainkit_indexer.follow.loop import Observer, StopRequest
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_indexer.service.opening import Following
from chainkit_indexer.service.run import follow_chain
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.envelope_log import EnvelopeLog
from chainkit_node.inboxes.contract_wallets import ContractWallets
from chainkit_node.inboxes.follower import InboxFollower
from chainkit_node.live.feed import ChainFeed
from chainkit_node.live.handover import Handover
from chainkit_node.live.hub import Hub
from chainkit_node.originating.freshness import ChainFreshness
from chainkit_node.originating.publisher import Originator, Publisher
from chainkit_node.originating.registration import Registration
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.originating.sequencer import Sequencer
from chainkit_node.serving.api import SERVICES, api_methods
from chainkit_node.serving.gate import server_bounds
from chainkit_node.serving.metrics import NodeMetrics
from chainkit_node.serving.publishing import PayerDesk
from chainkit_node.serving.readiness import Readiness
from chainkit_node.settings import ServingLimits, StrangerLimits

_GRACE_SECONDS: Final = 5.0


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
    address: str
    """``HOST:PORT`` for gRPC; port 0 takes a free one."""
    certificate: grpc.ServerCredentials | None
    """None serves in plain text."""


async def run_node(service: NodeService) -> None:
    """Serve until SIGINT or SIGTERM comes, or the indexer ends with an error, which is raised."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    store, hub, handover = service.follows.store, Hub(), Handover(loop)
    log = EnvelopeLog(store)
    freshness = ChainFreshness(time.monotonic)
    metrics = NodeMetrics()
    service.monitor.also_reports(metrics.text)

    def publish(rows: Sequence[StoredEnvelope]) -> None:
        metrics.committed(rows, time.time_ns())
        handover.call(hub.publish, rows)

    registration = Registration(store, time.monotonic)
    sequencer = Sequencer(
        store, registration.node_id, service.key, time.time_ns, publish, service.record
    )
    publisher = Publisher(Originator(log, sequencer, registration, freshness))
    desk = PayerDesk(publisher, handover, service.limits, metrics)
    methods = api_methods(log, hub, desk.publish_payer_envelopes, service.limits, metrics)
    server = GrpcServer(methods, SERVICES, server_bounds(service.strangers, metrics.refused))

    def tell(is_ready: bool) -> None:
        metrics.said_ready(is_ready)
        asyncio.run_coroutine_threadsafe(server.say_ready(is_ready), loop)

    readiness = Readiness(tell)
    inboxes = InboxFollower(store, log, service.wallets.at, metrics.said_updates_waiting)
    # In this order: an update that a stream tells of is known to GetInboxIds.
    observers = (inboxes, ChainFeed(log, hub, handover), freshness, readiness)
    indexer = _IndexerThread(service, observers, lambda: loop.call_soon_threadsafe(ended.set))
    try:
        port = await server.start(service.address, service.certificate)
        host = service.address.rpartition(":")[0]
        await server.say_ready(False)
        how = "plain text" if service.certificate is None else "TLS"
        text = f"node for readers and payers at {host}:{port} (gRPC, {how})"
        log_event(LogEvent("node_listening", text, {"port": port}))
        # The collector stops every stream for as long as it looks: modules stay, so it need not.
        gc.freeze()
        indexer.start()
        await ended.wait()
    finally:
        await server.stop(_GRACE_SECONDS)
        service.stop.is_set = True
        await asyncio.to_thread(indexer.finish)
        await asyncio.to_thread(publisher.close)
        await asyncio.to_thread(sequencer.close)
        log.close()
    indexer.raise_error()


class _IndexerThread:
    """Follows the chain beside the event loop, and keeps the error that ended it."""

    def __init__(
        self, service: NodeService, observers: Sequence[Observer], ended: Callable[[], object]
    ) -> None:
        self._service = service
        self._observers = observers
        self._ended = ended
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="indexer")

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        service = self._service
        try:
            follow_chain(
                service.follows,
                service.heads,
                service.registry_urls,
                service.stop,
                service.monitor,
                observers=self._observers,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._ended()
