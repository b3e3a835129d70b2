"""A node's URL, as the registry and the command line have it, and what gRPC connects to."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from chainkit.errors import ConfigurationError
from chainkit.text.hosts import is_on_own_machine

_PORTS: Final = {"http": 80, "https": 443}


def check_host(subject: str, url: str, trusted: Iterable[str]) -> None:
    """Check that a registry's URL does not lead to this machine, or to one on its link.

    The holder of a node chooses its URL. On a private network on one machine such a URL is right:
    there all ``trusted`` URLs that can be used are like it. Raises ConfigurationError about
    ``subject``.
    """
    if is_on_own_machine(url) and any(map(_leads_elsewhere, trusted)):
        raise ConfigurationError(subject, "a host that others reach", "one on this machine")


def grpc_target(subject: str, url: str) -> tuple[str, str]:
    """Return scheme, and host with port, of ``http://host[:port]`` or ``https://host[:port]``.

    Raises ConfigurationError about ``subject`` for anything else. It does not repeat the URL, which
    may hold a password or be chosen by a stranger.
    """
    expected = "http://host:port or https://host:port"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(subject, expected, "no URL") from error
    is_plain = not (parts.username or parts.path.strip("/") or parts.query or parts.fragment)
    if parts.scheme not in _PORTS or not host or not is_plain:
        raise ConfigurationError(subject, expected, "another URL")
    shown = f"[{host}]" if ":" in host else host
    return parts.scheme, f"{shown}:{port or _PORTS[parts.scheme]}"


def _leads_elsewhere(url: str) -> bool:
    with suppress(ConfigurationError):
        grpc_target("URL", url)
        return not is_on_own_machine(url)
    return False
