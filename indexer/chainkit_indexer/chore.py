"""Work between two steps, when nothing else is to do at the head: it rests longer than it works."""

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
"""Rests so much longer than it worked: the payloads' steps wait for a slow answer."""


@dataclass(slots=True)
class Chore:
    """When to do the next piece of such work, and what to do about its errors."""

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
        """Do a piece if one is due; it returns the seconds to wait before the next one.

        An error of the endpoint or the database is reported, logged once, and ends the piece: no
        envelope depends on such work.
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
