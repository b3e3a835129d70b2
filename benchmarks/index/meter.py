"""Takes time, CPU time and memory around the events of one row."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from benchmarks.index.job import Cost, Measured
from benchmarks.usage import own_cpu_seconds, own_peak_mebibytes

EDGE_EVENTS: Final = 50_000
"""How many events the first and the last part of a row have, where it has that many."""


class _Mark(NamedTuple):
    events: int
    seconds: float
    cpu_seconds: float


class Meter:
    """Begins to measure where it is made: after imports, connections and empty tables."""

    def __init__(self, events: int) -> None:
        """Take how many events are to come."""
        self._edge = min(EDGE_EVENTS, events)
        self._expected = events
        self._events = 0
        self._start = _mark(0)
        self._after_first: _Mark | None = None
        self._before_last: _Mark | None = None

    def count(self, events: int) -> None:
        """Take note of some events that are done with."""
        self._events += events
        if self._after_first is None and self._events >= self._edge:
            self._after_first = _mark(self._events)
        if self._before_last is None and self._events >= self._expected - self._edge:
            self._before_last = _mark(self._events)

    def finish(self) -> Measured:
        """Return what it all cost. Children must still run, or their memory is not counted."""
        end = _mark(self._events)
        before_last = self._before_last or self._start
        is_short = before_last.events == end.events
        return Measured(
            total=_between(self._start, end),
            peak_mebibytes=own_peak_mebibytes(),
            first=_between(self._start, self._after_first or end),
            last=_between(self._start if is_short else before_last, end),
        )


def _mark(events: int) -> _Mark:
    return _Mark(events, time.perf_counter(), own_cpu_seconds())


def _between(start: _Mark, end: _Mark) -> Cost:
    return Cost(
        end.events - start.events,
        end.seconds - start.seconds,
        end.cpu_seconds - start.cpu_seconds,
    )
