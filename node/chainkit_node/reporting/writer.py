"""Stores the reports of misbehavior that this node hosts: its own, and those of clients (§3.2.8).

Theory of operation. A thread judges all waiting reports, and signs and stores admissible reports in
one transaction, with times that rise. The thread is the only writer, so it counts the stored
reports of each kind in memory. Only clients wait, each for its own report. The queue is bounded by
bytes, separately for clients and for the node, so that a flood of clients' reports keeps out none
of the node's own. A report is answered once it is committed, and stored once: a client that submits
a known report again gets the same answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from sqlalchemy import Connection

from chainkit.errors import ChainkitError
from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.report import LivenessRequest, liveness_report, safety_report
from chainkit.misbehavior.types import SLOW_SECONDS, UNRESPONSIVE_SECONDS, Misbehavior
from chainkit.protocol.reports import misbehavior_digest
from chainkit.service.allowance import Held
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady
from chainkit.signatures import SigningKey
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.storage.store import Store
from chainkit_node.group_thread import GroupThread
from chainkit_node.peers.directory import Listing, NodeDirectory
from chainkit_node.reporting.bounds import ReportBounds
from chainkit_node.reporting.chain_rows import ChainRows
from chainkit_node.reporting.judgement import JudgedReport, ReportJudge
from chainkit_node.reporting.metrics import ReportMetrics
from chainkit_node.reporting.quotas import ReportQuotas
from chainkit_node.reporting.refusals import (
    Reason,
    TooManyReports,
    TooManyWaiting,
    reason_of,
)
from chainkit_node.storage.reports import (
    FROM_CLIENT,
    FROM_NODE,
    StoredReport,
    count_reports,
    holds_report,
    insert_report,
    next_report_time,
)

MOST_WAITING_BYTES: Final = 32 << 20
"""Bytes of one origin's reports that wait to be judged."""

LEAST_CHARGE: Final = 64 << 10
"""Bytes that a smaller report counts for, too: so clients' reports never fill the queue."""

_LEAST_SECONDS: Final = {
    Misbehavior.SLOW_NODE: SLOW_SECONDS,
    Misbehavior.UNRESPONSIVE_NODE: UNRESPONSIVE_SECONDS,
}
"""From how long an answer is a failure, without what this node was late itself."""

_SUBJECT: Final = "misbehavior report"

_MOST_PER_COMMIT: Final = 8 << 20
"""Bytes that one transaction stores, but for one report more."""

_EXPECTED: Final = (Reason.FULL, Reason.WAITING, Reason.UNAVAILABLE)
"""Reasons for which a line for each report would flood the log; they are counted."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    report: bytes
    origin: str
    answer: Future[None] = field(default_factory=Future)

    @property
    def charge(self) -> int:
        return max(len(self.report), LEAST_CHARGE)


class ReportWriter:
    """The one place that signs and stores reports; for any thread, until ``close``."""

    def __init__(
        self,
        store: Store,
        directory: NodeDirectory,
        key: SigningKey,
        metrics: ReportMetrics,
        bounds: ReportBounds,
        clock_ns: Callable[[], int] = time.time_ns,
        own_delays: Callable[[float], float] = lambda seconds: 0.0,
    ) -> None:
        """Take the node's database, registry and key, the metrics, and how much is stored.

        ``own_delays`` tells by how much this node's own loop was late in the last seconds. Raises
        StoreError where the database cannot be read.
        """
        self._store = store
        self._directory = directory
        self._chain = ChainRows(store)
        self._key = key
        self._metrics = metrics
        self._bounds = bounds
        self._clock_ns = clock_ns
        self._own_delays = own_delays
        self._lock = Lock()
        self._room = {each: Held(MOST_WAITING_BYTES, 0) for each in (FROM_NODE, FROM_CLIENT)}
        with store.reading() as connection:
            self._quotas: ReportQuotas | None = self._read_quotas(connection)
        metrics.holds(self._quotas.rows())
        self._thread = GroupThread[_Waiting](
            "reports",
            self._store_all,
            lambda each: each.charge,
            _MOST_PER_COMMIT,
            _SUBJECT,
        )

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        """Report a safety failure that this node saw, by serialized OriginatorEnvelopes.

        The call never waits and never raises: a report that cannot be stored is dropped and
        counted. Evidence that does not show the failure is logged as an error.
        """
        now_ns = self._clock_ns()
        self._submit_own(
            lambda: safety_report(node_id, misbehavior, envelopes, now_ns, is_from_node=True)
        )

    def submit_own_liveness(
        self,
        node_id: int,
        misbehavior: Misbehavior,
        request: LivenessRequest,
        response_time_ns: int,
    ) -> None:
        """Report a request that was answered late, with an error or not at all.

        A node that was late itself takes an answer that has come for one that is late, so its
        own delays do not count. The call never waits and never raises, as ``submit_own_safety``.
        """
        seconds = response_time_ns / NANOSECONDS_PER_SECOND
        delays = self._own_delays(seconds)
        if delays and seconds - delays < _LEAST_SECONDS.get(misbehavior, 0.0):
            self._metrics.refused(Reason.LATE)
            return
        now_ns = self._clock_ns()
        self._submit_own(
            lambda: liveness_report(
                node_id, misbehavior, request, response_time_ns, now_ns, is_from_node=True
            )
        )

    def submit_for_client(self, report: bytes) -> Future[None]:
        """Judge a client's UnsignedMisbehaviorReport; the future ends once it is stored.

        The future has InvalidReport where no node may host the report, TooManyReports where enough
        like it are stored, or NotReady. Raises Overloaded where too many reports wait.
        """
        waiting = _Waiting(report, FROM_CLIENT)
        try:
            self._put(waiting)
        except ChainkitError as error:
            self._metrics.refused(reason_of(error))
            raise
        return waiting.answer

    def close(self) -> None:
        """Store the waiting reports, and end the thread."""
        self._thread.close()

    def _submit_own(self, write: Callable[[], bytes]) -> None:
        try:
            self._put(_Waiting(write(), FROM_NODE))
        except ChainkitError as error:
            self._drop_own(error)

    def _put(self, waiting: _Waiting) -> None:
        room = self._room[waiting.origin]
        with self._lock:
            if not room.has_room(waiting.charge):
                expected = f"at most {room.most} bytes that wait to be judged"
                raise TooManyWaiting(_SUBJECT, expected, "more; try again later")
            room.take("", waiting.charge)
        try:
            self._thread.put(waiting)
        except ChainkitError:
            self._give_back([waiting])
            raise

    def _give_back(self, group: Sequence[_Waiting]) -> None:
        with self._lock:
            for each in group:
                self._room[each.origin].give_back("", each.charge)

    def _store_all(self, group: Sequence[_Waiting]) -> None:
        try:
            judged = self._judge_all(group)
            if judged:
                self._commit(judged)
        except Exception as error:
            for each in group:
                self._refuse(each, error)
        finally:
            self._give_back(group)

    def _judge_all(self, group: Sequence[_Waiting]) -> list[tuple[_Waiting, JudgedReport]]:
        judge = self._judge()
        judged = []
        for each in group:
            try:
                judged.append((each, judge.judge(each.report, each.origin)))
            except Exception as error:
                self._refuse(each, error)
        return judged

    def _judge(self) -> ReportJudge:
        listing = self._listing()
        keys = {node_id: node.signing_key for node_id, node in listing.nodes.items()}
        return ReportJudge(keys, self._clock_ns(), self._chain.holds, self._bounds)

    def _listing(self) -> Listing:
        listing = self._directory.listing()
        if listing.block is None:
            raise NotReady("registry", "its nodes at a block", "none so far")
        return listing

    def _commit(self, judged: Sequence[tuple[_Waiting, JudgedReport]]) -> None:
        refused: list[_Waiting] = []
        stored: list[_Waiting] = []
        accusations = 0
        own_id = self._listing().own_id
        try:
            with self._store.writing() as connection:
                quotas = self._quotas or self._read_quotas(connection)
                for waiting, each in judged:
                    if holds_report(connection, each.digest):
                        stored.append(waiting)
                    elif quotas.make_room(connection, each.kind, len(each.report)):
                        insert_report(connection, self._signed(connection, each))
                        stored.append(waiting)
                        accusations += _is_proof_about(own_id, each)
                    else:
                        refused.append(waiting)
        except BaseException:
            # The counts include reports that were undone.
            self._quotas = None
            raise
        self._quotas = quotas
        self._metrics.holds(quotas.rows())
        self._metrics.was_accused(accusations)
        for waiting in stored:
            if waiting.answer.set_running_or_notify_cancel():
                waiting.answer.set_result(None)
        expected = "fewer stored reports of this type about this node"
        for waiting in refused:
            self._refuse(waiting, TooManyReports(_SUBJECT, expected, "as many as are kept"))

    def _signed(self, connection: Connection, judged: JudgedReport) -> StoredReport:
        return StoredReport(
            next_report_time(connection, self._clock_ns()),
            *judged.kind,
            judged.digest,
            judged.report,
            self._key.sign(misbehavior_digest(judged.report)),
        )

    def _read_quotas(self, connection: Connection) -> ReportQuotas:
        return ReportQuotas(self._bounds, count_reports(connection))

    def _refuse(self, waiting: _Waiting, error: Exception) -> None:
        if waiting.answer.done():
            return
        if waiting.origin == FROM_NODE:
            self._drop_own(error)
        else:
            self._metrics.refused(reason_of(error))
        if waiting.answer.set_running_or_notify_cancel():
            waiting.answer.set_exception(error)

    def _drop_own(self, error: Exception) -> None:
        reason = reason_of(error)
        self._metrics.refused(reason)
        if reason not in _EXPECTED:
            text = f"a report of this node is not stored: {error}"
            event = LogEvent("own_report_dropped", text, {"reason": reason}, logging.ERROR)
            log_event(event)


def _is_proof_about(node_id: int | None, judged: JudgedReport) -> bool:
    return judged.kind.weight == Weight.PROVED and judged.kind.node_id == node_id
