"""Whether the node knows the chain's latest state: without it, nothing is published (N18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from chainkit.errors import ChainkitError
from chainkit.service.refusals import NotReady
from chainkit_indexer.types import StepResult

STALE_SECONDS: Final = 30.0
"""Seconds without a step that succeeded, after which the chain counts as out of reach."""


class ChainFreshness:
    """An observer of the indexer's loop. Read from other threads, it is at most a step behind."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with a chain that was never reached; the clock is in seconds."""
        self._clock = clock
        self._succeeded_at = float("-inf")

    def succeeded(self, result: StepResult, seconds: float) -> None:
        """Record that an endpoint answered."""
        self._succeeded_at = self._clock()

    def failed(self, error: ChainkitError) -> None:
        """The time without an answer goes on."""

    def check(self) -> None:
        """Raise NotReady where the latest state of the chain is not known (XIP-49 §3.3.4)."""
        if self._clock() - self._succeeded_at > STALE_SECONDS:
            expected = f"an answer of the chain within {STALE_SECONDS:g} s"
            raise NotReady("publish", expected, "none; try again once the node has synced")
