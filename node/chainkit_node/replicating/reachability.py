"""Which nodes answer, by the outcomes of this node's requests; no I/O, no clock (XIP-49 §3.2.7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chainkit.misbehavior.types import SLOW_SECONDS, UNRESPONSIVE_SECONDS, Misbehavior

LONGEST_SECONDS: Final = 60.0
"""How long an answer is waited for at most, after many failures."""


@dataclass(slots=True)
class _Silence:
    since: float
    failures: int


class Reachability:
    """All nodes that were asked; moments are seconds of a clock that only grows."""

    def __init__(self) -> None:
        """Begin with nodes that all answer."""
        self._silent: dict[int, _Silence] = {}

    def answered(self, node_id: int, seconds: float) -> Misbehavior | None:
        """Record an answer that took ``seconds``; return what to report it as."""
        self._silent.pop(node_id, None)
        return Misbehavior.SLOW_NODE if seconds > SLOW_SECONDS else None

    def refused(self, node_id: int) -> Misbehavior:
        """Record an answer with an error code; return what to report it as."""
        self._silent.pop(node_id, None)
        return Misbehavior.FAILED_REQUEST

    def silent(self, node_id: int, asked_at: float, now: float) -> Misbehavior | None:
        """Record a request without an answer; return what to report it as."""
        silence = self._silent.setdefault(node_id, _Silence(asked_at, 0))
        silence.failures += 1
        return Misbehavior.UNRESPONSIVE_NODE if self.is_unreachable(node_id, now) else None

    def is_unreachable(self, node_id: int, now: float) -> bool:
        """Return whether a node has not answered for too long."""
        silence = self._silent.get(node_id)
        return silence is not None and now - silence.since >= UNRESPONSIVE_SECONDS

    def silent_seconds(self, node_id: int, now: float) -> float:
        """Return for how long a node has not answered, 0 where it has."""
        silence = self._silent.get(node_id)
        return 0.0 if silence is None else now - silence.since

    def patience(self, node_id: int) -> float:
        """Return for how many seconds to wait for the next answer: longer after each failure."""
        silence = self._silent.get(node_id)
        failures = 0 if silence is None else min(silence.failures, 16)
        return min(UNRESPONSIVE_SECONDS * 2.0**failures, LONGEST_SECONDS)

    def forget(self, node_id: int) -> None:
        """Forget a node that is not asked any more."""
        self._silent.pop(node_id, None)
