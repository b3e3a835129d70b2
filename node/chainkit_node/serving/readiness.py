"""Whether health checks (grpc.health.v1) report that the node serves."""

from __future__ import annotations

from collections.abc import Callable

from chainkit.errors import ChainkitError, StoreError
from chainkit_indexer.types import StepResult


class Readiness:
    """An observer of the indexer's loop, on its thread; reports changes only.

    A node serves from the first step that succeeded until a step finds its database away. An
    endpoint of the chain that does not answer is no reason: what is stored is still read.
    """

    def __init__(self, report: Callable[[bool], object]) -> None:
        """Begin with a node that does not serve, as health checks report from the start."""
        self._report = report
        self._is_ready = False

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Record a database that answered."""
        self.say(True)

    def failed(self, error: ChainkitError) -> None:
        """Record a step that the database may have failed."""
        if isinstance(error, StoreError):
            self.say(False)

    def say(self, is_ready: bool) -> bool:
        """Report a change; return whether it was one."""
        is_change = is_ready != self._is_ready
        if is_change:
            self._is_ready = is_ready
            self._report(is_ready)
        return is_change
