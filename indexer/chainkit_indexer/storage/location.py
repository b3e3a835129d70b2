"""The value of ``--database``: a path, or the URL of SQLite or PostgreSQL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from chainkit.errors import ConfigurationError

_SCHEME: Final = re.compile(r"[\w+.-]+://")
_URL_WITHOUT_SLASHES: Final = re.compile(r"[\w+.-]{2,}:.*@")
_LIBPQ_WORDS: Final = re.compile(
    r"^\s*\w+\s*=|\s(?:host|hostaddr|port|dbname|user|password|passfile|service|sslpassword)\s*="
)
"""As in `host=db password=secret`: as a path, each message would show the password."""
_POSTGRES_SCHEMES: Final = ("postgresql", "postgresql+psycopg")
_SHOWN_OPTIONS: Final = ("host", "hostaddr", "port", "dbname", "user", "application_name")
"""Fields of a URL's query that may be shown; any other may contain a password by mistake."""


def parse_location(location: str) -> Path | URL:
    """Return the path of SQLite's file, or the URL of a PostgreSQL database.

    Raises ConfigurationError for anything else.
    """
    if "://" not in location and _LIBPQ_WORDS.search(location):
        raise ConfigurationError("database", "a path or a URL", "words with =")
    if "://" not in location and not _URL_WITHOUT_SLASHES.match(location):
        return _file(location)
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        raise _malformed(location) from None
    if "@" in (url.host or ""):
        # The rest of a password that holds an @, which a URL writes as %40.
        raise _malformed(location)
    if url.drivername == "sqlite":
        if url.username or url.host or url.query:
            raise _malformed(location)
        return _file(url.database)
    if url.drivername not in _POSTGRES_SCHEMES:
        # Not shown: the text before :// may be a misplaced password.
        expected = "a path, or a URL of sqlite or postgresql"
        raise ConfigurationError("database", expected, "another scheme")
    return url


def shown(location: Path | URL) -> str:
    """Return the location for messages: a URL may hold a password, also in its query."""
    if isinstance(location, Path):
        return str(location)
    return location.set(query={}).render_as_string(hide_password=True)


class HiddenWords:
    """The secret parts of a location, which no message may show; the repr is empty of them."""

    def __init__(self, location: Path | URL) -> None:
        """Hide a URL's password, and the values of its query except those that name the place."""
        values = _hidden_values(location) if isinstance(location, URL) else []
        # An option may hold several words, of which an error repeats the one that is wrong.
        words = [word for value in values for word in re.split(r"[\s=,]+", value)]
        self._words = sorted({*values, *words} - {""}, key=len, reverse=True)

    def removed_from(self, text: str) -> str:
        """Return an error's text without the secret parts, which drivers and servers quote."""
        for word in self._words:
            for quoted in (f'"{word}"', repr(word)):
                text = text.replace(quoted, '"…"')
        return text


def _hidden_values(url: URL) -> list[str]:
    values = [str(url.password)] if url.password else []
    for name, value in url.query.items():
        if name not in _SHOWN_OPTIONS:
            # One that is given twice reaches libpq as the text of a tuple.
            values += [str(value), *([value] if isinstance(value, str) else value)]
    return values


def _file(path: str | None) -> Path:
    if path in (None, "", ":memory:"):
        raise ConfigurationError("database", "a path to a file", "none")
    return Path(str(path))


def _malformed(location: str) -> ConfigurationError:
    """Show nothing of a URL but its scheme: any other part may be a password or a piece of one."""
    scheme = _SCHEME.match(location)
    got = f"a malformed {scheme[0]} URL" if scheme else "a malformed URL"
    return ConfigurationError("database", "a path or a URL", got)
