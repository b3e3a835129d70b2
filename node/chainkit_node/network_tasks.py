"""The node's work with other nodes: replication, repair and the watchdog."""

from __future__ import annotations

import random
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from chainkit.signatures import SigningKey
from chainkit.types import Node
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.accounting.books import Books
from chainkit_node.accounting.reporter import PayerReporter, round_seconds
from chainkit_node.inspection.live import RecentRepairs
from chainkit_node.originating.clock_check import ClockCheck
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.originating.twin import TwinCheck
from chainkit_node.peers.client import PeerClient
from chainkit_node.peers.clocks import PeerClocks
from chainkit_node.peers.connections import PeerConnection
from chainkit_node.peers.tokens import PeerTokens
from chainkit_node.process import OpenedLog
from chainkit_node.replicating.dependency_keeper import DependencyKeeper, StoredLogs
from chainkit_node.replicating.gap_keeper import GapKeeper
from chainkit_node.replicating.intake import Intake
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.replicating.own_log import OwnLog
from chainkit_node.replicating.own_url import OwnUrl
from chainkit_node.replicating.plan import SubscriptionPlan
from chainkit_node.replicating.repairer import Repair, Repairer
from chainkit_node.replicating.replicator import Replicator
from chainkit_node.reporting.writer import ReportWriter
from chainkit_node.watching.about_self import ReportsAboutSelf
from chainkit_node.watching.own_rows import WatchedRows
from chainkit_node.watching.rounds import Rounds
from chainkit_node.watching.watchdog import Watchdog


class NetworkTasks:
    """The tasks that ask other nodes; made and run on the event loop's thread."""

    def __init__(
        self,
        opened: OpenedLog,
        key: SigningKey,
        record: SequenceRecord | None,
        writer: ReportWriter,
        clock: ClockCheck,
        twin: TwinCheck,
        watch_seconds: float,
        report_seconds: float,
    ) -> None:
        """Build the tasks; ``watch_seconds`` between two rounds of the watchdog, 0 for none.

        ``report_seconds`` is how long an envelope waits for a payer report; 0 for no reports.
        """
        store, metrics = opened.store, opened.metrics
        listing, chance = opened.newest.listing, random.SystemRandom()
        tokens = PeerTokens(opened.newest.enabled_id, key, time.time)

        def connect(node: Node) -> PeerClient:
            listing().check_url(node)
            return PeerClient(PeerConnection(node, tokens))

        def connect_as_stranger(node: Node) -> PeerClient:
            listing().check_url(node)
            return PeerClient(PeerConnection(node, None))

        def connect_to_itself(node: Node) -> PeerClient:
            # A new token each time: the process there may have started after the last one.
            own = PeerTokens(opened.newest.enabled_id, key, time.time, twin.wrote)
            return PeerClient(PeerConnection(node, own))

        def publish(new: Sequence[StoredEnvelope], late: Sequence[StoredEnvelope]) -> None:
            if new:
                opened.publish(new)
            if late:
                opened.insert(late)

        self.repairs = RecentRepairs(time.monotonic)

        def repaired(repair: Repair) -> None:
            metrics.repaired(repair)
            self.repairs.repaired(repair)

        logs = StoredLogs(store, opened.directory.listing, lambda: self.own_log.is_known)
        self._dependencies = DependencyKeeper(
            logs, writer, time.monotonic, metrics.dropped_dependency
        )
        self.ungiven = UngivenIds(
            lambda: opened.directory.listing().own_id, lambda: self.own_log.is_known
        )
        self._recent = logs.recent
        self._intake = Intake(
            store,
            writer,
            clock.latest_ns,
            publish,
            self._dependencies.take,
            self.ungiven,
            twin.took,
        )
        self._own_url = OwnUrl(listing, connect_to_itself, twin)
        self.own_log = OwnLog(
            listing, connect, self._intake, record, self._own_url.ask, twin.begins
        )
        self.repairer = Repairer(
            listing,
            connect,
            opened.log,
            self._intake,
            GapKeeper(store, writer, time.time_ns),
            time.monotonic,
            clock.latest_ns,
            repaired,
            self._dependencies.compared,
            lambda originator_id: self.replicator.delivery(originator_id),
            chance,
        )
        self.replicator = Replicator(
            listing,
            connect,
            self._intake,
            writer,
            SubscriptionPlan(chance),
            time.monotonic,
            metrics.replicated,
            self.repairer.hurry,
        )
        self._clocks = PeerClocks(listing, connect_as_stranger, clock.told)
        self.about_self = ReportsAboutSelf(
            listing, connect_as_stranger, Rounds(chance), time.monotonic, clock.latest_ns
        )
        metrics.knows_accusations(self.about_self.new_proofs)
        self._watchdog = None
        if watch_seconds:
            self._watchdog = Watchdog(
                listing,
                connect_as_stranger,
                WatchedRows(store, time.time),
                self._intake,
                writer,
                Rounds(chance, watch_seconds),
                time.monotonic,
                metrics.watched,
                chance,
            )
        self._twin = twin
        self._payer_reporter = PayerReporter(
            Books(store, key, time.time_ns),
            listing,
            connect_as_stranger,
            self.check_own_log,
            Rounds(chance, round_seconds(report_seconds)),
            time.monotonic,
            report_seconds,
        )
        metrics.knows_payer_reports(self._payer_reporter.standing, time.time_ns)
        metrics.counts_dependencies(self._dependencies.waiting)
        metrics.knows_registry(lambda: listing().state)
        metrics.knows_own_log(lambda: self.own_log.waits)
        unreachable = self.replicator.unreachable
        metrics.counts_peers(self.replicator.open_streams, lambda: len(unreachable()))

    def check_own_log(self) -> None:
        """Raise NotReady while it is not known what this node has signed."""
        self._twin.check()
        self.own_log.check()

    async def _know_own(self) -> None:
        """Read which own ids other nodes named, and only then report that this node originates."""
        await self.ungiven.run(self._recent)
        await self.own_log.run()

    def coroutines(self) -> list[Coroutine[Any, Any, None]]:
        """Return the tasks; each task runs until it is cancelled."""
        coroutines = [self._know_own(), self.replicator.run(), self.repairer.run()]
        coroutines.append(self._dependencies.run(self.repairer.hurry))
        coroutines += [self._clocks.run(), self.about_self.run(), self._own_url.run()]
        coroutines.append(self._payer_reporter.run())
        if self._watchdog is not None:
            coroutines.append(self._watchdog.run())
        return coroutines

    def close(self) -> None:
        """Finish the batch being stored; call this when all tasks have ended."""
        self._intake.close()
