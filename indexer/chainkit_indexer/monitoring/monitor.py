"""Reports the loop's work to its watchers: the log, Prometheus, a load balancer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from chainkit.errors import ChainkitError, FatalChainError, StoreError
from chainkit.service.log_lines import LogEvent, configure_logging, log_event, without_secrets
from chainkit.service.monitor_server import Answer, MonitorServer, parse_listen
from chainkit_indexer.monitoring.health import Check, Health
from chainkit_indexer.monitoring.limits import ReadyLimits
from chainkit_indexer.monitoring.metrics import Differing, Metrics
from chainkit_indexer.monitoring.narration import Narrator
from chainkit_indexer.types import StepResult

if TYPE_CHECKING:
    from chainkit.chain import EndpointPool
    from chainkit.chain.heads import HeadWatcher
    from chainkit_indexer.follow.loop import StopRequest

FAREWELL_SECONDS: Final = 30.0
"""How long the last metrics stay readable after an error that a person must decide."""

_FAREWELL_POLL_SECONDS: Final = 0.1


class Monitor:
    """The observer of ``run``; a context manager around everything that may fail before it, too.

    If the block ends with an error that a person must decide, ``/metrics`` stays open until it was
    read once more, FAREWELL_SECONDS at most: a process that ends at once would not show the reason.
    """

    def __init__(
        self,
        stop: StopRequest,
        log_format: str = "text",
        listen: str | None = None,
        limits: ReadyLimits | None = None,
    ) -> None:
        """Log to stderr; with ``listen`` (``HOST:PORT``) also serve metrics and health.

        Raises ConfigurationError where nobody can listen there.
        """
        configure_logging(log_format)
        limits = limits or ReadyLimits()
        has_terminal = log_format == "text" and sys.stderr.isatty()
        self.health = Health(limits)
        self._stop = stop
        self._metrics = Metrics(self.health)
        self._narrator = Narrator(has_terminal, limits.serves_final_only)
        self._observers = (self._narrator, self._metrics, self.health)
        self._more_metrics: Callable[[], bytes] = bytes
        self._was_read = False
        self._is_json = log_format == "json"
        self._paths: dict[str, Callable[[], Answer]] = {
            "/metrics": self._read,
            "/healthz": self._healthz,
            "/readyz": self._readyz,
        }
        self._server = None if listen is None else self._serve(listen)

    def watch(
        self,
        pool: EndpointPool,
        heads: HeadWatcher,
        sequence_ids: Mapping[int, int],
        differing: Differing = dict,
        stored_differences: Callable[[], int] = int,
    ) -> None:
        """Take the endpoints to ask at each scrape, and the last sequence ids by originator id."""
        self._metrics.watch(pool, heads, differing, stored_differences)
        self._metrics.knows(sequence_ids)

    def differing(self) -> Mapping[str, bool]:
        """Return by endpoint whether it shows another chain than the followed one."""
        return self._metrics.sources.differing()

    def stored_differences(self) -> int:
        """Return how many stored rows were found to differ from the chain."""
        return self._metrics.sources.stored_differences()

    def watch_disk(self, folder: Path) -> None:
        """Report how full the disk of one more folder is."""
        self._metrics.watch_disk(folder)

    def also_reports(self, metrics: Callable[[], bytes]) -> None:
        """Add Prometheus' text to ``/metrics``; its names must differ from the indexer's."""
        self._more_metrics = metrics

    def also_serves(self, paths: Mapping[str, Callable[[], Answer]]) -> None:
        """Answer more paths, on threads of the server; nothing where the server does not listen."""
        self._paths.update(paths)

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Pass on the result of a step of so many seconds."""
        for observer in self._observers:
            observer.succeeded(result, seconds)

    def failed(self, error: ChainkitError) -> None:
        """Pass on an error after which the step is tried again."""
        for observer in self._observers:
            observer.failed(error)

    @property
    def address(self) -> str | None:
        """``HOST:PORT`` of the server, or None."""
        return None if self._server is None else self._server.address

    def __enter__(self) -> Self:
        """Watch from now on."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Give the terminal back and end the server."""
        if isinstance(error, ChainkitError) and (self._is_json or self._server):
            for observer in self._observers:
                observer.stopped(error)
        if error is None:
            self._narrator.ended(self._stop.is_set, self.health.observation.cursor)
        self._narrator.close()
        if self._server is None:
            return
        if isinstance(error, FatalChainError | StoreError):
            self._wait_for_last_scrape()
        self._server.close()

    def _wait_for_last_scrape(self) -> None:
        self._was_read = False
        deadline = time.monotonic() + FAREWELL_SECONDS
        while not (self._was_read or self._stop.is_set) and time.monotonic() < deadline:
            self._stop.wait(_FAREWELL_POLL_SECONDS)

    def _serve(self, listen: str) -> MonitorServer:
        server = MonitorServer(parse_listen(listen), self._paths)
        text = f"listening on {server.address} for {', '.join(self._paths)}"
        log_event(LogEvent("listening", text, {"address": server.address}))
        return server

    def _read(self) -> Answer:
        text = self._metrics.text() + self._more_metrics()
        self._was_read = True
        return Answer(200, CONTENT_TYPE_PLAIN_0_0_4, text)

    def _healthz(self) -> Answer:
        check = self.health.alive()
        return Answer.of_json(check.is_ok, {"alive": check.is_ok, "checks": _checks(check)})

    def _readyz(self) -> Answer:
        checks = self.health.checks()
        is_ready = all(check.is_ok for check in checks)
        content: dict[str, Any] = {"ready": is_ready, "checks": _checks(*checks)}
        if error := self.health.observation.error:
            content["last_error"] = without_secrets(f"{type(error).__name__}: {error}")
        return Answer.of_json(is_ready, content)


def _checks(*checks: Check) -> dict[str, Any]:
    return {
        check.name: {
            "ok": check.is_ok,
            "value": check.value,
            "limit": check.limit,
            "unit": check.unit,
        }
        for check in checks
    }
