"""Background tasks between two steps, when nothing is to do at the head; they rest longest."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from chainkit.chain import Endpoint
from chainkit.chain.backoff import Backoff
from chainkit.errors import ChainError, StoreUnavailable
from chainkit.service.log_lines import LogEvent, log_event

_REST_AFTER_WORK: Final = 9.0
"""The rest is this many times as long as the work: a slow answer delays the payloads' steps."""


@dataclass(slots=True)
class BackgroundTask:
    """The schedule of a background task, and the handling of its errors."""

    name: str
    """Name of the log event of an error."""
    failure: str
    """Begins the log line, before the error."""
    pauses: Backoff
    """After errors in a row."""
    report: Callable[[Endpoint, ChainError], None]
    """Receives the errors of endpoints."""
    clock: Callable[[], float]
    """Returns seconds that only rise."""
    _due: float = field(init=False)
    _failures: int = 0
    _last_failure: str = ""

    def __post_init__(self) -> None:
        """Be due at once."""
        self._due = self.clock()

    def do(self, endpoint: Endpoint, piece: Callable[[], float]) -> None:
        """Do a piece if one is due; it returns the seconds until the next piece.

        An error of the endpoint or the database is reported, logged once, and ends the piece: no
        envelope depends on a background task.
        """
        began = self.clock()
        if began < self._due:
            return
        try:
            pause = piece()
            self._failures, self._last_failure = 0, ""
        except (ChainError, StoreUnavailable) as error:
            self._failures += 1
            pause = self.pauses.pause(self._failures)
            if isinstance(error, ChainError):
                self.report(endpoint, error)
            if str(error) != self._last_failure:
                self._last_failure = str(error)
                text = f"{self.failure}: {error}"
                log_event(LogEvent(self.name, text, level=logging.WARNING))
        now = self.clock()
        self._due = now + max(pause, _REST_AFTER_WORK * (now - began))
