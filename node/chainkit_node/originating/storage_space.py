"""Whether the database has room for what payers publish.

Below a watermark of free space nothing is taken from payers any more, so that the node can still
follow the chain and replicate other nodes' envelopes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from chainkit.errors import ChainkitError, StoreError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady
from chainkit_indexer.types import StepResult
from chainkit_node.settings import StorageLimits

LOOK_SECONDS: Final = 5.0
"""Between two looks: PostgreSQL adds up the sizes of all its files."""


class StorageSpace:
    """An observer of the indexer's loop; all other methods are for any thread."""

    def __init__(
        self,
        measure: Callable[[int], int | None],
        limits: StorageLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``Store.free_bytes``, the limits, and a clock in seconds that only grows."""
        self._measure = measure
        self._limits = limits
        self._clock = clock
        self._looked_at = float("-inf")
        self._free: int | None = None
        self._is_logged = False

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Look how much is free, if the last look is long ago."""
        if self._clock() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = self._clock()
        try:
            self._free = self._measure(self._limits.database_bytes)
        except StoreError:
            # The indexer's loop logs the error of the next step.
            return
        self._log()

    def failed(self, error: ChainkitError) -> None:
        """The last look goes on to count."""

    def free_bytes(self) -> int | None:
        """Return how many bytes the database may still take; None where nobody knows."""
        return self._free

    def room_bytes(self) -> int | None:
        """Return how many more bytes lead to a refusal of publishes; None where nobody knows."""
        return None if self._free is None else self._free - self._limits.free_bytes

    def check(self) -> None:
        """Raise NotReady where payers' payloads would fill the database."""
        if (refusal := self._refusal()) is not None:
            raise refusal

    def short(self) -> str | None:
        """Return in words that there is too little space, or None."""
        refusal = self._refusal()
        return None if refusal is None else str(refusal)

    def _refusal(self) -> NotReady | None:
        free, least = self._free, self._limits.free_bytes
        if free is None or free >= least:
            return None
        expected = f"at least {least} bytes free for the database"
        return NotReady("publish", expected, f"{free}; try another node")

    def _log(self) -> None:
        """Log a change."""
        short = self.short()
        if (short is not None) == self._is_logged:
            return
        self._is_logged = short is not None
        if short is None:
            log_event(LogEvent("storage_has_room", "storage: there is room for publishes again"))
        else:
            event = LogEvent("storage_short", short, {"free": self._free}, logging.ERROR)
            log_event(event)
