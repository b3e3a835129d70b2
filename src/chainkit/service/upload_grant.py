"""Grants of one upload to a storage service (XIP-31, "authenticate requests to /backups").

A gateway writes grants for its clients, and the storage service checks them: both hold one key. A
grant names nobody, so the service does not learn whose file it stores. No I/O but ``read_key``, no
clock, no chance: moments and ids are handed in.

A grant is, in base64url without padding::

    moment until which it holds (8 bytes, seconds since 1970) ‖ id (16 bytes) ‖ HMAC-SHA256 (32)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from chainkit.documents.files import read_regular
from chainkit.errors import ConfigurationError, InvalidSignature, MalformedData

GRANT_PARAMETER: Final = "grant"
"""The query parameter of an upload's URL that holds its grant."""

KEY_LENGTH: Final = 32
"""Bytes of the key that gateway and service share."""

ID_LENGTH: Final = 16
"""Bytes of a grant's id; chosen at random, no two grants have one."""

_LABEL: Final = b"upload-grant|"
_TIME_LENGTH: Final = 8
_CLAIMS_LENGTH: Final = _TIME_LENGTH + ID_LENGTH
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{75}")
_MOST_FILE_BYTES: Final = 4096
_SUBJECT: Final = "upload grant"


@dataclass(frozen=True, slots=True)
class Grant:
    """One upload that may be made."""

    id: bytes
    """16 bytes; the service takes each id once."""
    expires_at: int
    """Seconds since 1970; from then on the grant is refused."""


def write_grant(key: bytes, grant: Grant) -> str:
    """Return a grant's text: 75 characters of base64url. ``key`` has 32 bytes."""
    claims = grant.expires_at.to_bytes(_TIME_LENGTH, "big") + grant.id
    return base64.urlsafe_b64encode(claims + _code(key, claims)).rstrip(b"=").decode("ascii")


def read_grant(key: bytes, text: str, now: float) -> Grant:
    """Return the grant of a text; ``now`` is in seconds since 1970.

    Raises MalformedData for a text that is no grant or has expired, and InvalidSignature for one of
    another key.
    """
    if not _TEXT.fullmatch(text):
        raise MalformedData(_SUBJECT, "75 characters of base64url", "another text")
    try:
        data = base64.urlsafe_b64decode(text + "=")
    except binascii.Error as error:
        raise MalformedData(_SUBJECT, "base64url", "another text") from error
    claims, code = data[:_CLAIMS_LENGTH], data[_CLAIMS_LENGTH:]
    if not hmac.compare_digest(_code(key, claims), code):
        raise InvalidSignature(_SUBJECT, "one by this service's key", "another one")
    grant = Grant(claims[_TIME_LENGTH:], int.from_bytes(claims[:_TIME_LENGTH], "big"))
    if now >= grant.expires_at:
        got = f"one that expired {now - grant.expires_at:.0f} s ago"
        raise MalformedData(_SUBJECT, "a grant that holds", got)
    return grant


def upload_url(base_url: str, key: bytes, grant: Grant) -> str:
    """Return the URL to which a grant's file is uploaded."""
    return f"{base_url}/backups?{GRANT_PARAMETER}={write_grant(key, grant)}"


def read_base_url(text: str, option: str) -> str:
    """Return the URL at which clients reach a storage service, without a slash at its end.

    Raises ConfigurationError about the option.
    """
    try:
        parts = urlsplit(text)
        is_base = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_base = False
    if not is_base or parts.query or parts.fragment or parts.username is not None:
        raise ConfigurationError(option, "http://HOST or https://HOST", text)
    return text.rstrip("/")


def read_key(path: Path) -> bytes:
    """Return the key of a file: 64 hex digits. Raises ConfigurationError, without the content."""
    subject = f"grant key {path}"
    text = read_regular(path, subject, _MOST_FILE_BYTES).strip()
    if not re.fullmatch(rb"[0-9a-fA-F]{64}", text):
        raise ConfigurationError(subject, "64 hex digits", "another content")
    return bytes.fromhex(text.decode("ascii"))


def _code(key: bytes, claims: bytes) -> bytes:
    return hmac.digest(key, _LABEL + claims, hashlib.sha256)
