"""Serves a reading process's metrics over HTTP, and whether its database answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from chainkit.service.monitor_server import Answer
from chainkit_node.serving.metrics import NodeMetrics

STALE_SECONDS: Final = 15.0
"""Seconds without an answer of the database, after which the process is not ready."""


class ReaderHealth:
    """When the database last answered; written by one thread, read by others."""

    def __init__(self, metrics: NodeMetrics, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a database that has not answered; the clock is in seconds."""
        self._metrics = metrics
        self._clock = clock
        self._answered_at: float | None = None

    def answered(self) -> None:
        """Record an answer."""
        self._answered_at = self._clock()

    def paths(self) -> Mapping[str, Callable[[], Answer]]:
        """Return the answers of ``/metrics``, ``/healthz`` and ``/readyz``."""
        return {"/metrics": self._text, "/healthz": self._healthz, "/readyz": self._readyz}

    def _text(self) -> Answer:
        return Answer(200, CONTENT_TYPE_PLAIN_0_0_4, self._metrics.text())

    def _healthz(self) -> Answer:
        # Always alive: the process ends with its follower.
        return Answer.of_json(True, {"alive": True})

    def _readyz(self) -> Answer:
        age = None if self._answered_at is None else self._clock() - self._answered_at
        is_ready = age is not None and age <= STALE_SECONDS
        check: dict[str, Any] = {"ok": is_ready, "limit": STALE_SECONDS, "unit": "seconds"}
        if age is not None:
            check["value"] = round(age, 1)
        return Answer.of_json(is_ready, {"ready": is_ready, "checks": {"database_age": check}})
