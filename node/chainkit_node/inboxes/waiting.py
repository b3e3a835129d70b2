"""Identity updates that wait for a chain's answer about a contract wallet, and until when."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chainkit.chain.backoff import Backoff
from chainkit.errors import ChainError
from chainkit.service.log_lines import LogEvent, log_event

PAUSES: Final = Backoff(1.0, 60.0)


@dataclass(slots=True)
class _Waiting:
    sequence_id: int
    failures: int
    again_at: float
    """When to try again, in seconds of the clock."""


class WaitingUpdates:
    """At most one update of each originator: the later updates wait behind it."""

    def __init__(
        self, clock: Callable[[], float], say_count: Callable[[int], object] = lambda count: None
    ) -> None:
        """Begin with none; ``clock`` returns seconds, ``say_count`` takes how many wait."""
        self._clock = clock
        self._say_count = say_count
        self._waiting: dict[int, _Waiting] = {}

    @property
    def is_any(self) -> bool:
        """Whether an update waits."""
        return bool(self._waiting)

    def is_pausing(self, originator_id: int) -> bool:
        """Return whether it is too early to ask again for an originator's update."""
        waiting = self._waiting.get(originator_id)
        return waiting is not None and self._clock() < waiting.again_at

    def hurry(self) -> None:
        """Let all updates be tried again at once: a reorg may have changed what waits."""
        for waiting in self._waiting.values():
            waiting.failures, waiting.again_at = 0, self._clock()

    def met(self, originator_id: int, sequence_id: int, error: ChainError) -> None:
        """Record an update that was not decided."""
        waiting = self._waiting.get(originator_id)
        if waiting is None or waiting.sequence_id != sequence_id:
            waiting = self._waiting[originator_id] = _Waiting(sequence_id, 0, 0.0)
            _log_waits(originator_id, sequence_id, error)
            self._say_count(len(self._waiting))
        waiting.again_at = self._clock() + PAUSES.pause(waiting.failures)
        waiting.failures += 1

    def passed(self, originator_id: int, sequence_id: int) -> None:
        """Record that an originator's updates are decided up to a sequence id."""
        waiting = self._waiting.get(originator_id)
        if waiting is not None and waiting.sequence_id <= sequence_id:
            self.ended(originator_id)

    def ended(self, originator_id: int) -> None:
        """Record that nothing of an originator waits: it was decided, or taken back."""
        waiting = self._waiting.pop(originator_id, None)
        if waiting is None:
            return
        _log_goes_on(originator_id, waiting.sequence_id)
        self._say_count(len(self._waiting))


def _log_waits(originator_id: int, sequence_id: int, error: ChainError) -> None:
    text = (
        f"identity update {sequence_id} of originator {originator_id} waits, and all behind it: "
        f"{error}"
    )
    fields = _fields(originator_id, sequence_id) | {"error": str(error)}
    log_event(LogEvent("identity_update_waits", text, fields, logging.WARNING))


def _log_goes_on(originator_id: int, sequence_id: int) -> None:
    text = f"identity updates of originator {originator_id} go on: {sequence_id} waits no longer"
    fields = _fields(originator_id, sequence_id)
    log_event(LogEvent("identity_updates_go_on", text, fields))


def _fields(originator_id: int, sequence_id: int) -> dict[str, int | str]:
    return {"originator_id": originator_id, "sequence_id": sequence_id}
