"""Room for connections among the files that the process may open.

A flood of connections that takes the last file would take the database's, too.
"""

from __future__ import annotations

import logging
import resource
import sys
from typing import Final

from chainkit.service.log_lines import LogEvent, log_event

OTHER_FILES: Final = 200
"""Files for the database, the endpoints, the monitor and the process itself."""


def within_open_files(connections: int) -> int:
    """Raise the process's own limit as far as needed; return how many fit it, and say so."""
    soft, hard = open_files()
    raised, fitting = fit(connections, soft, hard)
    if raised != soft:
        _, kept = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, kept))
    if fitting != connections:
        text = f"at most {fitting} connections: the process may open {raised} files"
        log_event(LogEvent("few_open_files", text, {"files": raised}, logging.WARNING))
    return fitting


def open_files() -> tuple[int, int]:
    """Return how many files this process may open, and up to how many it may raise that itself."""
    soft, hard = map(_number, resource.getrlimit(resource.RLIMIT_NOFILE))
    return soft, hard


def fit(connections: int, soft: int, hard: int) -> tuple[int, int]:
    """Return the limit of open files to set, and how many connections fit it; 0 stays 0."""
    if not connections:
        return soft, 0
    raised = max(soft, min(connections + OTHER_FILES, hard))
    return raised, min(connections, max(raised - OTHER_FILES, 1))


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
