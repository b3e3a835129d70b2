"""The loop in numbers, for Prometheus.

All names begin with ``chainkit_indexer_``, but for those of the process itself: ``process_``.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from chainkit import __version__
from chainkit.chain.member import error_kind
from chainkit.errors import ChainkitError
from chainkit_indexer.monitoring.health import Health
from chainkit_indexer.types import Advanced, Provenance, RolledBack, StepResult

if TYPE_CHECKING:
    from chainkit.chain import EndpointPool, EndpointStatus
    from chainkit.chain.heads import HeadStatistics, HeadWatcher

_PREFIX: Final = "chainkit_indexer"
_STEP_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_DEPTH_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TRAFFIC: Final = (
    ("endpoint_requests", "HTTP requests sent.", "requests"),
    ("endpoint_received_bytes", "Bytes of answers.", "bytes_received"),
    ("endpoint_request_seconds", "Time spent on requests.", "seconds_spent"),
)

Differing = Callable[[], Mapping[str, bool]]
"""Returns by endpoint whether it shows another chain than the followed one."""

_Sample = tuple[Sequence[str], float]
_Family = TypeVar("_Family", GaugeMetricFamily, CounterMetricFamily)


class Metrics:
    """Counts what the loop does; everything else is read at a scrape."""

    def __init__(self, health: Health, wall_clock: Callable[[], float] = time.time) -> None:
        """Start at zero, in a registry of its own; ``wall_clock`` returns seconds since 1970."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._wall_clock = wall_clock
        self._registry = registry = CollectorRegistry()
        self._envelopes = self._counter("envelopes", "Envelopes signed and stored.")
        self._established = self._counter(
            "established_blocks", "Blocks followed, by how they were established.", "how"
        )
        for each in Provenance:
            self._established.labels(str(each))
        self._quarantined = self._counter("quarantined", "Payloads that are kept, never served.")
        self._reorgs = self._counter("reorgs", "Reorgs that reached below the cursor.")
        self._retracted = self._counter("retracted", "Payloads that reorgs took back.")
        self._errors = self._counter("errors", "Steps that failed, by class of error.", "kind")
        self._sequence_id = Gauge(
            f"{_PREFIX}_sequence_id",
            "Last sequence id that was stored, by originator.",
            ["originator"],
            registry=registry,
        )
        self._success = Gauge(
            f"{_PREFIX}_last_success_timestamp_seconds",
            "When a step succeeded last, in seconds since 1970.",
            registry=registry,
        )
        self._depth = Histogram(
            f"{_PREFIX}_reorg_depth_blocks",
            "Blocks that reorgs took back.",
            buckets=_DEPTH_BUCKETS,
            registry=registry,
        )
        self._seconds = Histogram(
            f"{_PREFIX}_step_seconds",
            "Duration of steps that succeeded, by what they did.",
            ["result"],
            buckets=_STEP_BUCKETS,
            registry=registry,
        )
        self._stopped = Gauge(
            f"{_PREFIX}_stopped",
            "1 once an error of that class has ended the loop.",
            ["kind"],
            registry=registry,
        )
        self.sources = _Sources(health)
        registry.register(self.sources)
        ProcessCollector(registry=registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def watch(
        self,
        pool: EndpointPool,
        heads: HeadWatcher,
        differing: Differing,
        stored_differences: Callable[[], int],
    ) -> None:
        """Ask these at each scrape from now on."""
        self.sources.pool, self.sources.heads = pool, heads
        self.sources.differing = differing
        self.sources.stored_differences = stored_differences

    def watch_disk(self, folder: Path) -> None:
        """Look at each scrape at the disk of one more folder."""
        self.sources.folders[str(folder.absolute())] = None

    def knows(self, sequence_ids: Mapping[int, int]) -> None:
        """Take note of the last sequence ids by originator id."""
        for originator_id, sequence_id in sequence_ids.items():
            self._sequence_id.labels(str(originator_id)).set(sequence_id)

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Take note of what a step of so many seconds did."""
        self._success.set(self._wall_clock())
        self._seconds.labels(_word(result)).observe(seconds)
        if isinstance(result, Advanced):
            self._envelopes.inc(result.envelopes)
            blocks = result.cursor.number - result.from_block + 1
            self._established.labels(str(result.established)).inc(blocks)
            self._quarantined.inc(result.quarantined)
            self.knows(result.sequence_ids)
        elif isinstance(result, RolledBack):
            self._reorgs.inc()
            self._retracted.inc(result.retracted)
            self._depth.observe(result.depth)

    def failed(self, error: ChainkitError) -> None:
        """Take note of an error after which the step is tried again."""
        self._errors.labels(error_kind(error)).inc()

    def stopped(self, error: ChainkitError) -> None:
        """Take note of the error that ended the loop."""
        self.failed(error)
        self._stopped.labels(error_kind(error)).set(1)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}_{name}", text, labels, registry=self._registry)


def _word(result: StepResult) -> str:
    if isinstance(result, Advanced):
        return "advanced"
    return "rolled_back" if isinstance(result, RolledBack) else "idle"


class _Sources:
    """Values of other parts, read at the moment of a scrape."""

    def __init__(self, health: Health) -> None:
        self.pool: EndpointPool | None = None
        self.heads: HeadWatcher | None = None
        self.differing: Differing = dict
        self.stored_differences: Callable[[], int] = int
        self.folders: dict[str, None] = {}
        """Each once, in the order in which they came."""
        self._health = health

    def collect(self) -> Iterable[Metric]:
        about = ((__version__, platform.python_version()), 1)
        yield _gauge("build_info", "Version.", [about], ("version", "python"))
        yield from self._blocks()
        yield from self._ages()
        yield from self._checks()
        yield from _disks(self.folders)
        if self.pool is not None:
            yield from _endpoints(self.pool.statistics())
        text = "1 where it shows another chain than the one that is followed."
        found = [((name,), int(differs)) for name, differs in self.differing().items()]
        yield _gauge("endpoint_differs", text, found, ("endpoint",))
        text = "Stored rows that the proof of older blocks found to differ from the chain."
        yield _counter("stored_differences", text, [((), self.stored_differences())], ())
        if self.heads is not None:
            yield from _subscription(self.heads.statistics())

    def _blocks(self) -> Iterator[Metric]:
        seen = self._health.observation
        if seen.head is None or seen.cursor is None:
            return
        yield _one("head_block", "Height of the newest block.", seen.head.number)
        yield _one("cursor_block", "Height up to which was followed.", seen.cursor.number)
        yield _one("final_block", "Height up to which nothing changes.", seen.final_block)
        text = "Blocks between the cursor and where it wants to be."
        yield _one("lag_blocks", text, seen.blocks_to_go)
        text = "Time of the newest block, in seconds since 1970."
        yield _one("head_timestamp_seconds", text, seen.head.timestamp)

    def _ages(self) -> Iterator[Metric]:
        seen, age = self._health.observation, self._health.age
        yield _one("turn_age_seconds", "Since a step ended in whatever way.", age(seen.turned))
        yield _one("step_age_seconds", "Since a step succeeded.", age(seen.succeeded))
        yield _one("head_age_seconds", "Since the newest block changed.", age(seen.head_moved))
        text = "Since the cursor moved or had nowhere to go."
        yield _one("cursor_age_seconds", text, age(seen.cursor_moved))
        text = "Answers that contradict what was proved, since a step succeeded."
        yield _one("contradictions", text, seen.contradictions)
        yield _one(
            "database_up",
            "0 since a step found the database unavailable.",
            int(seen.store_error is None),
        )

    def _checks(self) -> Iterator[Metric]:
        checks = self._health.checks()
        text = "1 where all checks of /readyz hold."
        yield _one("ready", text, int(all(check.is_ok for check in checks)))
        each = [((check.name,), int(check.is_ok)) for check in checks]
        yield _gauge("check", "1 where a check of /readyz holds.", each, ("check",))


def _disks(folders: Iterable[str]) -> Iterator[Metric]:
    found = []
    for folder in folders:
        # No sample is better than a scrape that fails: the folder may be on a disk that is gone.
        with suppress(OSError):
            usage = shutil.disk_usage(folder)
            found.append(((folder,), usage.total, usage.free))
    label = ("folder",)
    total, free = "Size of the disk of a folder.", "Free bytes of the disk of a folder."
    yield _gauge("disk_bytes", total, [(each, size) for each, size, _ in found], label)
    yield _gauge("disk_free_bytes", free, [(each, left) for each, _, left in found], label)


def _endpoints(found: Sequence[EndpointStatus]) -> Iterator[Metric]:
    yield _gauge(
        "endpoint_state",
        "1 for the state it is in.",
        [
            ((each.name, state.value), int(each.state is state))
            for each in found
            for state in type(each.state)
        ],
        ("endpoint", "state"),
    )
    yield _gauge(
        "endpoint_consecutive_failures",
        "Failures since it last did what was asked.",
        [((each.name,), each.consecutive_failures) for each in found],
        ("endpoint",),
    )
    for name, text, attribute in _TRAFFIC:
        samples = [((each.name,), getattr(each, attribute)) for each in found]
        yield _counter(name, text, samples, ("endpoint",))
    yield _counter(
        "endpoint_errors",
        "Failures by kind; contradictions also by what they are about.",
        [((each.name, kind), count) for each in found for kind, count in each.errors.items()],
        ("endpoint", "kind"),
    )


def _subscription(found: HeadStatistics) -> Iterator[Metric]:
    yield _gauge(
        "websocket_state",
        "1 for the state that the subscription to new heads is in.",
        [((state.value,), int(found.state is state)) for state in type(found.state)],
        ("state",),
    )
    for name, text, count in (
        ("websocket_notifications", "New heads that were notified.", found.notifications),
        ("websocket_reconnects", "Subscriptions lost or refused.", found.reconnects),
        ("websocket_mute", "Subscriptions given up for saying nothing.", found.mute),
    ):
        yield _counter(name, text, [((), count)], ())


def _gauge(
    name: str, text: str, samples: Iterable[_Sample] = (), labels: Sequence[str] = ()
) -> Metric:
    return _with(GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=labels), samples)


def _counter(name: str, text: str, samples: Iterable[_Sample], labels: Sequence[str]) -> Metric:
    return _with(CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=labels), samples)


def _with(family: _Family, samples: Iterable[_Sample]) -> _Family:
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _one(name: str, text: str, value: float | None) -> Metric:
    """Return a gauge, without a sample while its value is not known."""
    return _gauge(name, text, () if value is None else [((), value)])
