"""Kinds of uploads, their limits, what is stored, and the refusals of the service."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from chainkit.errors import ChainkitError

DAY_SECONDS: Final = 86_400
DEFAULT_SECONDS: Final = 3 * DAY_SECONDS
"""How long a file is kept: XIP-31's 72 hours."""


class Kind(StrEnum):
    """How an upload was admitted; each kind has limits of its own."""

    OPEN = "open"
    """Without a grant, as today's clients upload: they cannot prove who they are."""
    GRANTED = "granted"
    """With a grant, which a gateway wrote for its client."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one kind of uploads may take."""

    file_bytes: int
    """The most that one file may have."""
    address_bytes: int
    """Most bytes that are kept for one address; 0 for no limit of its own."""
    total_bytes: int
    """The most that is kept; 0 refuses this kind."""


@dataclass(slots=True)
class Stored:
    """A file that is kept."""

    id: str
    kind: Kind
    size: int
    """Bytes."""
    expires_at: float
    """Seconds since 1970; from then on the file is not served."""
    address: str = ""
    """The uploader's; empty after a restart."""
    sent: int = 0
    """Bytes of the file that were sent, in all downloads."""


class Refused(ChainkitError):
    """A request that is not carried out; ``status`` is HTTP's, ``outcome`` the metrics' word."""

    status = 400
    outcome = "malformed"
    retry_seconds: float | None = None
    """After how many seconds the same request may be tried again; None for no promise."""


class NotAllowed(Refused):
    """A grant that does not hold, or a kind of uploads that this service does not take."""

    status = 403
    outcome = "not_allowed"


class NotFound(Refused):
    """There is no such file, or not any more."""

    status = 404
    outcome = "not_found"


class TooSlow(Refused):
    """The body came too slowly."""

    status = 408
    outcome = "too_slow"


class AlreadyUsed(Refused):
    """The upload of this grant was made."""

    status = 409
    outcome = "already_used"


class TooLarge(Refused):
    """The file is larger than one may be."""

    status = 413
    outcome = "too_large"


class OutOfRange(Refused):
    """The file has none of the bytes that a range names; ``size`` is the file's."""

    status = 416
    outcome = "out_of_range"
    size = 0


class TooMuch(Refused):
    """An address asks for more than its share."""

    status = 429
    outcome = "too_much"


class Full(Refused):
    """The service keeps as much as it may."""

    status = 507
    outcome = "full"
    retry_seconds = 600.0
