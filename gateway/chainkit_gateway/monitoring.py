"""The gateway's metrics, and whether the gateway is alive and ready.

All names begin with ``chainkit_gateway_``. The journal is read at each scrape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from chainkit.service.edge.counters import count_edge
from chainkit.service.monitor_server import Answer
from chainkit.service.refusals import Refusal
from chainkit_gateway.payer_account import PendingOutcome
from chainkit_gateway.types import Mined, Publication, Published, Publishes

ALIVE_SECONDS: Final = 15.0
"""How long the event loop may send no heartbeat."""

READY_SECONDS: Final = 60.0
"""How long the chain may be without an answer."""

_PREFIX: Final = "chainkit_gateway"
_PUBLISHED: Final = "published"
_UNSERVED: Final = "unserved"
_DESTINATIONS: Final = ("chain", "node")
_FAULTS: Final = ("unavailable", "internal")
"""Outcomes of which an alarm counts the increase: Prometheus sees none from nothing to 1."""


class GatewayMonitor:
    """Counts what the gateway does; its methods may be called from several threads."""

    def __init__(
        self,
        spent_today: Callable[[], int],
        nodes: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take functions for the wei of today and the number of nodes, and a clock in seconds."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._clock = clock
        self._nodes = nodes
        self._heartbeat = self._answered = clock()
        self._registry = registry = CollectorRegistry()
        self._publications = Counter(
            f"{_PREFIX}_publications",
            "Envelopes, by where they went, and published, unserved or the code of the refusal.",
            ["destination", "outcome"],
            registry=registry,
        )
        for destination in _DESTINATIONS:
            for outcome in (_PUBLISHED, *_FAULTS):
                self._publications.labels(destination, outcome)
        self._publications.labels("chain", _UNSERVED)
        self._refusals = Counter(
            f"{_PREFIX}_refusals",
            "Calls that were refused, by method and by gRPC's code.",
            ["method", "code"],
            registry=registry,
        )
        self._balance = self._gauge("balance_wei", "Wei of the account that pays, at the head.")
        self._waiting = self._gauge("waiting_transactions", "Sent, and not mined at the head.")
        self._oldest = self._gauge(
            "oldest_waiting_seconds", "Since the first of them was sent first; 0 without any."
        )
        spent = self._gauge("spent_today_wei", "Paid since midnight of UTC, and still reserved.")
        spent.set_function(spent_today)
        self._gauge("nodes", "Nodes that are named to clients.").set_function(nodes)
        ProcessCollector(registry=registry)
        count_edge(registry, _PREFIX)

    def heartbeat(self) -> None:
        """Record that the event loop runs."""
        self._heartbeat = self._clock()

    def observe_account(self, outcome: PendingOutcome, balance: int) -> None:
        """Record an answer of the chain, and the account's wei."""
        self._answered = self._clock()
        self._balance.set(balance)
        self._waiting.set(outcome.waiting)
        self._oldest.set(outcome.oldest_seconds)

    def count(self, publication: Publication, outcome: str) -> None:
        """Count a published or refused envelope."""
        destination = "chain" if publication.is_for_chain else "node"
        self._publications.labels(destination, outcome).inc()

    def refused(self, method: str, code: str) -> None:
        """Count a refused call."""
        self._refusals.labels(method, code).inc()

    @property
    def paths(self) -> dict[str, Callable[[], Answer]]:
        """The paths and answers of a MonitorServer."""
        return {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}

    def _metrics(self) -> Answer:
        return Answer(200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry))

    def _healthz(self) -> Answer:
        loop = _age("event_loop_age", self._clock() - self._heartbeat, ALIVE_SECONDS)
        return Answer.of_json(_all_ok(loop), {"alive": _all_ok(loop), "checks": loop})

    def _readyz(self) -> Answer:
        count = self._nodes()
        checks = _age("chain_age", self._clock() - self._answered, READY_SECONDS)
        checks["nodes"] = {"ok": count > 0, "value": count, "limit": 1, "unit": "nodes"}
        return Answer.of_json(_all_ok(checks), {"ready": _all_ok(checks), "checks": checks})

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", text, registry=self._registry)


class CountedPublisher:
    """Publishes, and counts the outcomes."""

    def __init__(self, publisher: Publishes, monitor: GatewayMonitor) -> None:
        """Take the publisher, and the monitor that counts."""
        self._publisher = publisher
        self._monitor = monitor

    async def place(self, publication: Publication, deadline: float) -> Mined | Published:
        """Publish; see ``Publisher``."""
        with self._refused(publication):
            return await self._publisher.place(publication, deadline)

    async def answer(
        self, publication: Publication, place: Mined | Published, deadline: float
    ) -> Published:
        """Wait for the answer; see ``Publisher``."""
        with self._refused(publication):
            answer = await self._publisher.answer(publication, place, deadline)
        self._monitor.count(publication, _PUBLISHED if answer.is_served else _UNSERVED)
        return answer

    @contextmanager
    def _refused(self, publication: Publication) -> Iterator[None]:
        try:
            yield
        except Refusal as refusal:
            self._monitor.count(publication, refusal.code.name.lower())
            raise
        except Exception:
            self._monitor.count(publication, "internal")
            raise


def _age(name: str, seconds: float, limit: float) -> dict[str, Any]:
    check = {"ok": seconds <= limit, "value": round(seconds, 1), "limit": limit, "unit": "seconds"}
    return {name: check}


def _all_ok(checks: dict[str, Any]) -> bool:
    return all(check["ok"] for check in checks.values())
