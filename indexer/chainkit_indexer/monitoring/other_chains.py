"""Compares the followed chain with that of the other hosts' endpoints, and reports differences.

Two chains may each be consistent. No answer shows then which chain is right, so the decision is
never silent: the indexer follows the endpoint that the operator prefers, and reports that others
differ.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Final

from chainkit.chain import Endpoint, EndpointPool
from chainkit.errors import ChainError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.types import BlockReference

PAUSE_SECONDS: Final = 5.0
"""Between two comparisons with an endpoint."""

LOOKS_UNTIL_SAID: Final = 3
"""In a row: at the head, two honest endpoints differ for a moment in each reorg."""


def _in_background(job: Callable[[], None]) -> None:
    Thread(target=job, name="other chains", daemon=True).start()


class OtherChains:
    """Look after each step; a comparison is made now and then, beside the steps."""

    def __init__(
        self,
        pool: EndpointPool,
        clock: Callable[[], float] = time.monotonic,
        in_background: Callable[[Callable[[], None]], object] = _in_background,
    ) -> None:
        """Compare with the endpoints of ``pool``."""
        self._pool = pool
        self._clock = clock
        self._in_background = in_background
        self._due = clock()
        self._is_looking = False
        self._differed: dict[str, int] = {}

    def look(self, endpoint: Endpoint, cursor: BlockReference) -> None:
        """Compare the cursor's block, as an endpoint gave it, if a comparison is due."""
        others = self._pool.others(endpoint)
        if not others or self._is_looking or self._clock() < self._due:
            return
        self._is_looking = True
        self._in_background(partial(self._compare_all, endpoint, cursor, others))

    def differing(self) -> dict[str, bool]:
        """Return by endpoint whether it showed another chain in the last comparison."""
        return {name: times >= LOOKS_UNTIL_SAID for name, times in dict(self._differed).items()}

    def _compare_all(
        self, endpoint: Endpoint, cursor: BlockReference, others: tuple[Endpoint, ...]
    ) -> None:
        try:
            for other in others:
                self._compare(endpoint, cursor, other)
        finally:
            self._due = self._clock() + PAUSE_SECONDS
            self._is_looking = False

    def _compare(self, endpoint: Endpoint, cursor: BlockReference, other: Endpoint) -> None:
        try:
            header = other.find_header(cursor.number)
        except ChainError:
            # An endpoint that does not answer shows nothing about the chain.
            return
        if header is None:
            return
        before = self._differed.get(other.name, 0)
        if header.hash == cursor.hash:
            self._differed[other.name] = 0
            if before >= LOOKS_UNTIL_SAID:
                text = f"{other.name} shows the same chain as {endpoint.name} again"
                log_event(LogEvent("same_chain", text, {"endpoint": other.name}))
            return
        self._differed[other.name] = before + 1
        if before + 1 == LOOKS_UNTIL_SAID:
            text = (
                f"two chains: block {cursor.number} is 0x{cursor.hash.hex()} at {endpoint.name}, "
                f"which is followed, and 0x{header.hash.hex()} at {other.name}"
            )
            fields = {"endpoint": other.name, "block": cursor.number}
            log_event(LogEvent("two_chains", text, fields, logging.WARNING))
