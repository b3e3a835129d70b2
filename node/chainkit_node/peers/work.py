"""Work with other nodes: each fault is logged once, and tasks are ended together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from chainkit.service.log_lines import LogEvent, log_event


class PeerFaults:
    """Logs that some work with a node fails once, until it succeeds."""

    def __init__(self, event: str, tried: str, then: str, level: int = logging.WARNING) -> None:
        """Take the log's event, what was tried with a node, and what follows.

        ``tried`` goes behind the node: ``could not be compared with``.
        """
        self._level = level
        self._event = event
        self._tried = tried
        self._then = then
        self._told: set[int] = set()

    def failed(self, node_id: int, error: Exception) -> None:
        """Record a failure."""
        if node_id not in self._told:
            self._told.add(node_id)
            name = f"node {node_id}"
            # An error about a node names it already.
            text = f"{name} {self._tried}: {str(error).removeprefix(f'{name}: ')}; {self._then}"
            fields = {"peer_id": node_id, "error": str(error)}
            log_event(LogEvent(self._event, text, fields, self._level))

    def passed(self, node_id: int) -> None:
        """Record a success: the next failure is logged again."""
        self._told.discard(node_id)


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until all have ended, with an error or without."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
