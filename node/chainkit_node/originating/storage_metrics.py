"""Numbers about what fills the database, as of the last look (ADR 76)."""

from __future__ import annotations

import math
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from chainkit.types import TopicKind
from chainkit_node.storage.storage_looks import Growth
from chainkit_node.storage.stored_bytes import StoredBytes

_PREFIX: Final = "chainkit_node"


class StorageMetrics:
    """Written on one thread, read at each scrape; each label has few values."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Begin with nothing known."""
        self._stored = Gauge(
            f"{_PREFIX}_stored_bytes",
            "Bytes of stored envelopes by kind, estimated once an hour.",
            ("kind",),
            registry=registry,
        )
        self._growth = Gauge(
            f"{_PREFIX}_storage_growth_bytes",
            "Bytes by which the database grows in a day; NaN where not known.",
            registry=registry,
        )
        self._left = Gauge(
            f"{_PREFIX}_storage_seconds_left",
            "Until publishes are refused if the database grows on; NaN where not known.",
            registry=registry,
        )
        for kind in TopicKind:
            self._stored.labels(kind.name.lower())
        self._growth.set(math.nan)
        self._left.set(math.nan)

    def looked(self, stored: StoredBytes, growth: Growth | None) -> None:
        """Set what a look has found."""
        for kind in TopicKind:
            self._stored.labels(kind.name.lower()).set(stored.kinds[int(kind)])
        self._growth.set(math.nan if growth is None else growth.bytes_per_day)
        left = None if growth is None else growth.seconds_left
        self._left.set(math.nan if left is None else left)
