"""Which URLs a device goes to: those of the storage service that its person trusts (H5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from chainkit.errors import ConfigurationError
from chainkit.text.hosts import is_loopback

_PORTS: Final = {"http": 80, "https": 443}
_PLAIN: Final = re.compile(r"[!#-;=?-\[\]_a-z~%]{1,2048}", re.IGNORECASE)
_HOST: Final = re.compile(r"[0-9a-z.:_-]+")
_EXPECTED: Final = "https://HOST, or http:// on this machine"


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of a URL: two that differ in one of them are two services."""

    scheme: str
    host: str
    """In lower case, as ASCII."""
    port: int

    def __str__(self) -> str:
        """Return the URL of the service, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = self.port == _PORTS[self.scheme]
        return f"{self.scheme}://{host}" + ("" if default else f":{self.port}")


def origin_of(url: str, subject: str) -> Origin:
    """Return the service of a URL.

    Raises ConfigurationError about ``subject``, without the URL, for one that is not plain: with a
    user, a fragment, blanks or escapes in its host, or without TLS to another machine.
    """
    error = ConfigurationError(subject, _EXPECTED, "another URL")
    try:
        parts = urlsplit(url)
        # The same host in letters of all scripts, and in ASCII, is one.
        host = (parts.hostname or "").encode("idna").decode("ascii").lower()
        port = parts.port
    except ValueError:
        raise error from None
    ascii_url = url.replace(parts.netloc, "", 1)
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host) or "@" in parts.netloc:
        raise error
    if not _PLAIN.fullmatch(ascii_url) or parts.fragment or port == 0:
        raise error
    if parts.scheme == "http" and not is_loopback(f"[{host}]:0" if ":" in host else f"{host}:0"):
        raise error
    return Origin(parts.scheme, host, port or _PORTS[parts.scheme])


def is_of(url: str, trusted: Origin) -> bool:
    """Return whether a URL that another one chose leads to the trusted service."""
    try:
        return origin_of(url, "URL") == trusted
    except ConfigurationError:
        return False
