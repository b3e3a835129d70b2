"""Options that several commands of the storage service take."""

from __future__ import annotations

from urllib.parse import urlsplit

from chainkit.errors import ConfigurationError


def base_url(text: str) -> str:
    """Return the URL at which clients reach the service, without a slash at its end.

    Raises ConfigurationError.
    """
    try:
        parts = urlsplit(text)
        is_base = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_base = False
    if not is_base or parts.query or parts.fragment or parts.username is not None:
        raise ConfigurationError("--url", "http://HOST or https://HOST", text)
    return text.rstrip("/")
