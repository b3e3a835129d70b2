"""The stored reports as anybody may read them (XIP-49 §3.2.8), a page at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from chainkit_indexer.storage.store import Store
from chainkit_node.reporting.bounds import ReportBounds
from chainkit_node.storage.reports import StoredReport, read_reports_after

_THREADS: Final = 1
"""Queries for reports wait for each other, and never for the threads that read envelopes."""


class ReportReader:
    """Reads the node's database in a thread of its own, from its construction until ``close``."""

    def __init__(self, store: Store, bounds: ReportBounds) -> None:
        """Take the database, and how large a page is."""
        self._store = store
        self._bounds = bounds
        self._thread = ThreadPoolExecutor(_THREADS, thread_name_prefix="report-reader")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def page_after(self, after_ns: int) -> Sequence[StoredReport]:
        """Return the first reports after a server time; none where there is no later one.

        Raises StoreError.
        """
        bounds = self._bounds

        def read() -> Sequence[StoredReport]:
            with self._store.reading() as connection:
                return read_reports_after(connection, after_ns, bounds.page, bounds.page_bytes)

        return await asyncio.get_running_loop().run_in_executor(self._thread, read)
