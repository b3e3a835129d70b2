"""The refusal of what a database does not do now."""

from __future__ import annotations

import logging

from chainkit.errors import ChainkitError
from chainkit.service.log_lines import LogEvent, log_event
from chainkit.service.refusals import NotReady


def database_away(subject: str, expected: str, error: ChainkitError) -> NotReady:
    """Log a database's error, and return the refusal for whoever asked.

    The error names the database's address and role, which concern no stranger.
    """
    log_event(LogEvent("database_failed", f"{subject}: {error}", level=logging.WARNING))
    refusal = NotReady(subject, expected, "none now; the node's log has more")
    refusal.__cause__ = error
    return refusal
