"""Requests to other nodes by how they ended, and reports of those that failed (XIP-49 §3.2.7)."""

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
    """Takes note of each request's end, and reports it where it is a failure."""

    def __init__(self, reports: LivenessReports, clock: Callable[[], float]) -> None:
        """Take who reports, and a clock in seconds that only grows."""
        self.reachability = Reachability()
        """Each node, as its answers show it."""
        self._reports = reports
        self._clock = clock

    def answered(self, node_id: int, request: LivenessRequest, seconds: float) -> None:
        """Take note of an answer that took so long."""
        self._report(node_id, self.reachability.answered(node_id, seconds), request, seconds)

    def refused(
        self, node_id: int, request: LivenessRequest, asked_at: float, is_rightful: bool
    ) -> None:
        """Take note of an answer with an error, which is reported unless an honest node gives it.

        Moments are the clock's.
        """
        found = self.reachability.refused(node_id)
        if not is_rightful:
            self._report(node_id, found, request, self._clock() - asked_at)

    def silent(self, node_id: int, request: LivenessRequest, asked_at: float) -> None:
        """Take note of a request that was not answered."""
        now = self._clock()
        found = self.reachability.silent(node_id, asked_at, now)
        # A connection that is refused at once says less than how long nothing came.
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
