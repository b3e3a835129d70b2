"""How the running node follows the chain, as a snapshot shows it; for any thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainkit.chain import EndpointPool, EndpointStatus
from chainkit.service.log_lines import without_secrets
from chainkit_indexer.monitoring.health import Check
from chainkit_indexer.monitoring.monitor import Monitor
from chainkit_node.inspection.snapshot import ChainEndpoint, ChainSide, FailingCheck
from chainkit_node.inspection.words import shown


@dataclass(frozen=True, slots=True)
class ChainView:
    """Looks at the endpoints, and at what the indexer's monitor has seen."""

    pool: EndpointPool
    monitor: Monitor
    updates_waiting: Callable[[], int]

    def blocks_to_go(self) -> int | None:
        """Return how many blocks are to be followed; None before the first step."""
        return self.monitor.health.observation.blocks_to_go

    def failing(self) -> tuple[FailingCheck, ...]:
        """Return the checks of ``/readyz`` that fail."""
        checks = self.monitor.health.checks()
        return tuple(FailingCheck(each.name, _why(each)) for each in checks if not each.is_ok)

    def side(self) -> ChainSide:
        """Return how the chain is followed."""
        error = self.monitor.health.observation.error
        differing = self.monitor.differing()
        endpoints = (
            _endpoint(each, differing.get(each.name, False)) for each in self.pool.statistics()
        )
        return ChainSide(
            error=None if error is None else _words(str(error)),
            endpoints=tuple(endpoints),
            stored_differences=self.monitor.stored_differences(),
            updates_waiting=self.updates_waiting(),
        )


def _endpoint(found: EndpointStatus, differs: bool) -> ChainEndpoint:
    error = None if found.error is None else _words(found.error)
    return ChainEndpoint(found.name, found.state, found.consecutive_failures, error, differs)


def _why(check: Check) -> str:
    if check.value is None:
        return "not known yet"
    unit = f" {check.unit}" if check.unit else ""
    return shown(f"expected {check.limit}, got {check.value}{unit}")


def _words(error: str) -> str:
    return shown(without_secrets(error))
