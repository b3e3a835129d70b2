"""Outcomes of requests to other nodes, and reports of failed requests (XIP-49 §3.2.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from chainkit.misbehavior.report import LivenessRequest
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.replicating.reachability import Reachability


class LivenessReports(Protocol):
    """Takes instances of liveness failures; on any thread, and without waiting."""

    def submit_own_liveness(
        self,
        node_id: int,
        misbehavior: Misbehavior,
        request: LivenessRequest,
        response_time_ns: int,
    ) -> object:
        """Report a node."""


class Liveness:
    """Records how each request ended, and reports failures."""

    def __init__(self, reports: LivenessReports, clock: Callable[[], float]) -> None:
        """Take the reports, and a clock in seconds that only grows."""
        self.reachability = Reachability()
        """How each node answers."""
        self._reports = reports
        self._clock = clock

    def answered(self, node_id: int, request: LivenessRequest, seconds: float) -> None:
        """Record an answer that took so long."""
        self._report(node_id, self.reachability.answered(node_id, seconds), request, seconds)

    def refused(
        self, node_id: int, request: LivenessRequest, asked_at: float, is_rightful: bool
    ) -> None:
        """Record an answer with an error, and report it unless an honest node answers so.

        ``asked_at`` is a moment of the clock.
        """
        found = self.reachability.refused(node_id)
        if not is_rightful:
            self._report(node_id, found, request, self._clock() - asked_at)

    def silent(self, node_id: int, request: LivenessRequest, asked_at: float) -> None:
        """Record a request without an answer."""
        now = self._clock()
        found = self.reachability.silent(node_id, asked_at, now)
        # The report has the time without any answer: a refused connection ends at once.
        self._report(node_id, found, request, self.reachability.silent_seconds(node_id, now))

    def _report(
        self,
        node_id: int,
        misbehavior: Misbehavior | None,
        request: LivenessRequest,
        seconds: float,
    ) -> None:
        if misbehavior is not None:
            response_ns = int(seconds * NANOSECONDS_PER_SECOND)
            self._reports.submit_own_liveness(node_id, misbehavior, request, response_ns)
