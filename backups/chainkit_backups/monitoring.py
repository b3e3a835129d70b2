"""The storage service's metrics, and whether the service is alive and ready.

All names begin with ``chainkit_backups_``. No metric names a file or an address.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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

from chainkit.service.monitor_server import Answer
from chainkit_backups.admission import Admission
from chainkit_backups.store import Store
from chainkit_backups.types import Full, Kind, Refused

ALIVE_SECONDS: Final = 15.0
"""How long the event loop may send no heartbeat."""

OVERDUE_SECONDS: Final = 900.0
"""How long a file that has expired may wait to be removed."""

_PREFIX: Final = "chainkit_backups"
_DONE: Final = "done"
_BROKEN: Final = "broken"
"""The client left."""
_FAILED: Final = "failed"
"""A fault of the service or its disk."""

_FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT)


class BackupsMonitor:
    """Counts what the service does; its methods may be called from several threads."""

    def __init__(
        self, store: Store, admission: Admission, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take what is watched, and a clock in seconds."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._clock = clock
        self._store = store
        self._heartbeat = clock()
        self._registry = registry = CollectorRegistry()
        self._uploads = Counter(
            f"{_PREFIX}_uploads",
            "Uploads, by kind, and done, broken, failed or the reason of the refusal.",
            ["kind", "outcome"],
            registry=registry,
        )
        self._downloads = Counter(
            f"{_PREFIX}_downloads",
            "Downloads, whole and in part: done, broken, failed or the reason of the refusal.",
            ["outcome"],
            registry=registry,
        )
        self._received = self._counter("received_bytes", "Bytes of files that came.")
        self._sent = self._counter("sent_bytes", "Bytes of files that were sent.")
        self._purged = self._counter("purged", "Files that were removed after they expired.")
        self._watch_space(admission)
        for outcome in (_DONE, _BROKEN, _FAILED):
            self._downloads.labels(outcome)
            for kind in Kind:
                self._uploads.labels(kind, outcome)
        ProcessCollector(registry=registry)

    def heartbeat(self) -> None:
        """Record that the event loop runs."""
        self._heartbeat = self._clock()

    def purged(self, count: int) -> None:
        """Count removed files."""
        self._purged.inc(count)

    @contextmanager
    def upload(self, kind: Kind) -> Iterator[Callable[[float], None]]:
        """Count an upload by how the block ends; a full disk ends the block with Full."""
        with _counted(lambda outcome: self._uploads.labels(kind, outcome).inc()):
            yield self._received.inc

    @contextmanager
    def download(self) -> Iterator[Callable[[float], None]]:
        """Count a download by how the block ends."""
        with _counted(lambda outcome: self._downloads.labels(outcome).inc()):
            yield self._sent.inc

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
        checks = _age("overdue", self._store.overdue_seconds, OVERDUE_SECONDS)
        free, _ = self._store.disk()
        checks["disk_free"] = {"ok": free > 0, "value": free, "limit": 1, "unit": "bytes"}
        return Answer.of_json(_all_ok(checks), {"ready": _all_ok(checks), "checks": checks})

    def _watch_space(self, admission: Admission) -> None:
        store, registry = self._store, self._registry
        held = Gauge(f"{_PREFIX}_bytes", "Bytes that are kept.", ["kind"], registry=registry)
        limit = Gauge(f"{_PREFIX}_limit_bytes", "Most of them.", ["kind"], registry=registry)
        files = Gauge(f"{_PREFIX}_files", "Files that are kept.", ["kind"], registry=registry)
        for kind in Kind:
            held.labels(kind).set_function(partial(admission.total, kind))
            limit.labels(kind).set(admission.limits[kind].total_bytes)
            files.labels(kind).set_function(partial(store.count, kind))
        self._gauge("disk_free_bytes", "Free on the disk.", lambda: store.disk()[0])
        self._gauge("disk_bytes", "Size of the disk.", lambda: store.disk()[1])
        self._gauge(
            "overdue_seconds",
            "Since the first file that has expired should have been removed; 0 without any.",
            lambda: store.overdue_seconds,
        )

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, registry=self._registry)

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(f"{_PREFIX}_{name}", text, registry=self._registry).set_function(value)


@contextmanager
def _counted(count: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        count(refusal.outcome)
        raise
    except OSError as error:
        if error.errno in _FULL_DISK:
            count(Full.outcome)
            raise Full("storage service", "room on the disk", "none") from error
        count(_BROKEN if isinstance(error, ConnectionError) else _FAILED)
        raise
    except BaseException as error:
        count(_FAILED if isinstance(error, Exception) else _BROKEN)
        raise
    count(_DONE)


def _age(name: str, seconds: float, limit: float) -> dict[str, Any]:
    check = {"ok": seconds <= limit, "value": round(seconds, 1), "limit": limit, "unit": "seconds"}
    return {name: check}


def _all_ok(checks: dict[str, Any]) -> bool:
    return all(check["ok"] for check in checks.values())
