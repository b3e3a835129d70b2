"""The parts of an endpoint's URL that may be shown: scheme, host, port. The rest may hold a key."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote, urlsplit

from chainkit.errors import ConfigurationError

_KNOWN_SCHEMES: Final = ("http", "https", "ws", "wss", "ftp", "file")
_WITHOUT_SCHEME: Final = re.compile(
    r"(?P<place>([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})([/?#].*)?"
)
"""Such as `127.0.0.1:8545`. A URL with a user and password is no location, so `place` holds no
secret."""
_SHORTEST_KEY: Final = 8
"""Shorter parts of a path are words: v2, mainnet."""
_LONGEST_TEXT: Final = 300


def location_of(url: str, subject: str = "RPC endpoint", scheme: str = "http") -> str:
    """Return scheme, host and port of a URL of a scheme or its encrypted form.

    Raises ConfigurationError, which shows no other part of the URL, and names the correct form
    where only the scheme is missing.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in (scheme, f"{scheme}s") and parts.hostname:
            host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
            return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
        known = parts.scheme if parts.scheme in _KNOWN_SCHEMES else "no such"
    except ValueError:
        known = "a malformed"
    article = "an" if scheme == "http" else "a"
    expected = f"{article} {scheme}:// or {scheme}s:// URL"
    if found := _WITHOUT_SCHEME.fullmatch(url):
        place = found["place"]
        raise ConfigurationError(subject, expected, place, f"write {scheme}://{place}")
    raise ConfigurationError(subject, expected, f"{known} URL")


def secrets_of(url: str) -> tuple[str, ...]:
    """Return a URL's parts that may be keys, the longest first: an endpoint may repeat any."""
    parts = urlsplit(url)
    words = [*parts.path.split("/"), *parts.query.split("&")]
    words += [word.partition("=")[2] for word in words]
    found = [word for word in words if len(word) >= _SHORTEST_KEY]
    found += [word for word in (parts.username, parts.password) if word and len(word) > 2]
    return tuple(sorted({*found, *map(unquote, found)}, key=len, reverse=True))


def shown(text: object, secrets: tuple[str, ...]) -> str:
    """Return a stranger's text, bounded and without the keys that it may repeat."""
    # Cut only afterwards: half a key is one that is not recognized.
    line = str(text)[: 10 * _LONGEST_TEXT]
    for secret in secrets:
        line = line.replace(secret, "…")
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
