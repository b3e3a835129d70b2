"""The job of a measuring process, and its answer: one line of JSON each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive blocks with the same number of events in each."""

    first_block: int
    last_block: int
    events: int
    """Number of events in all its blocks together."""


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the table, or one way to follow.

    It travels by standard input: a database's URL holds a password, and arguments are public.
    """

    row: str
    url: str
    record: str
    """Path of the deployment record."""
    database: str = ""
    """Path or URL of an empty database; rows that keep nothing need none."""
    stretch: Stretch = field(default_factory=lambda: Stretch(0, 0, 0))
    websocket: str | None = None
    """To follow with; without it, the head is polled."""

    @property
    def record_path(self) -> Path:
        """Path of the deployment record."""
        return Path(self.record)

    def to_line(self) -> str:
        """Write it as one line."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read such a line."""
        content = json.loads(line)
        return cls(**content | {"stretch": Stretch(**content["stretch"])})


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of some events."""

    events: int
    seconds: float
    cpu_seconds: float
    """CPU time of the process and its children together."""

    @property
    def events_per_second(self) -> float:
        """By the clock on the wall."""
        return self.events / self.seconds

    @property
    def cpu_microseconds_per_event(self) -> float:
        """CPU time on all processors together."""
        return self.cpu_seconds / self.events * 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of a row, measured in a process of its own."""

    total: Cost
    peak_mebibytes: float
    """Resident memory of the process and its children."""
    first: Cost
    last: Cost
    """The first and the last part, of EDGE_EVENTS: what grows with the database shows here."""

    def to_line(self) -> str:
        """Write it as one line."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read such a line."""
        content = json.loads(line)
        costs = {name: Cost(**content[name]) for name in ("total", "first", "last")}
        return cls(**content | costs)
