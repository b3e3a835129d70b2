"""Log lines from events: one source, written for a person or for a machine."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chainkit.service.log_limits import LogLimits

_ERASE_LINE: Final = "\r\x1b[2K"
_URL: Final = re.compile(
    r"\b([a-zA-Z][\w+.-]*://)(?:[^\s/@\"']*@)?([^\s/?#\"']*)(?:[/?#][^\s\"']*?(?=:?(?:[\s\"']|$)))?"
)

_logger = logging.getLogger("chainkit")


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Something that happened, in words and in fields."""

    name: str
    """Stable, so that operators can filter by name."""
    text: str
    """One sentence for a person."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values that JSON can hold; a field's name says the unit."""
    level: int = logging.INFO
    is_news: bool = False
    """Whether each line is new, such as the payloads of a block: then no line is left out."""


def log_event(event: LogEvent) -> None:
    """Write an event to the log."""
    _logger.log(event.level, "%s", event.text, extra={"event": event})


def configure_logging(
    log_format: str = "text", clock: Callable[[], float] = time.monotonic
) -> None:
    """Write log lines to stderr; only the lines' time is by the local clock.

    ``log_format`` is ``text`` or ``json``. Lines that repeat are left out, and counted in the next
    line like them; ``clock``, in seconds, decides when the next line is written.
    """
    formatter: logging.Formatter = _JsonFormatter()
    if log_format == "text":
        # Erase a progress bar on the last line; the bar draws itself again.
        formatter = _TextFormatter(_ERASE_LINE if sys.stderr.isatty() else "")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_Repeats(LogLimits(clock)))
    # The library's own modules log under the same name.
    _logger.handlers[:] = [handler]
    _logger.setLevel(logging.INFO)


def without_secrets(text: str) -> str:
    """Reduce each URL to scheme, host and port: other parts may hold a key or a password.

    Some endpoints and databases quote the URL in their errors.
    """
    return _URL.sub(r"\1\2", text)


class _Repeats(logging.Filter):
    """Leaves out what the limits do not admit, and notes on a record how many were left out."""

    def __init__(self, limits: LogLimits) -> None:
        super().__init__()
        self._limits = limits

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is to be written."""
        event = _event_of(record)
        repeats = 0 if event.is_news else self._limits.admit(event.name, event.text)
        record.repeats = repeats
        return repeats is not None


class _TextFormatter(logging.Formatter):
    """``2026-11-20T12:14:55Z INFO    sentence``, after a prefix that prepares the terminal."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def format(self, record: logging.LogRecord) -> str:
        """Write one line, whatever the message contains."""
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        sentence = one_line(without_secrets(record.getMessage()))
        repeats = getattr(record, "repeats", 0)
        more = f" ({repeats} more like this one before)" if repeats else ""
        return f"{self._prefix}{moment}Z {record.levelname:<7} {sentence}{more}"


class _JsonFormatter(logging.Formatter):
    """One object: time, level, event and message, then the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line; a record without an event becomes an event named ``message``."""
        event = _event_of(record)
        repeats = getattr(record, "repeats", 0)
        moment = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        content = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": event.name,
            "message": without_secrets(event.text),
            **{name: _clean(value) for name, value in event.fields.items()},
            **({"repeats": repeats} if repeats else {}),
        }
        return json.dumps(content)


def _event_of(record: logging.LogRecord) -> LogEvent:
    event: LogEvent | None = getattr(record, "event", None)
    return event or LogEvent("message", record.getMessage())


def _clean(value: Any) -> Any:
    return without_secrets(value) if isinstance(value, str) else value


def one_line(text: str) -> str:
    """Escape what could forge a second line or rewrite the screen."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
