"""The part of a snapshot that is about what fills the database; its strings are its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredShare:
    """A part of the bytes of all stored envelopes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class SizeOfDay:
    """The database's largest size of one day."""

    day: int
    """The day's beginning, in seconds since 1970."""
    bytes: int


@dataclass(frozen=True, slots=True)
class StorageStatus:
    """The database's size, and what fills it, as of the node's last look; once an hour."""

    looked_at: float
    """Seconds since 1970, to the hour."""
    used_bytes: int
    """The database's size: more than its envelopes."""
    room_bytes: int | None
    """Bytes until publishes are refused; None where nobody knows."""
    growth_bytes: int | None
    """A day's, below 0 where the database shrinks; None in the first six hours."""
    seconds_left: float | None
    """Until publishes are refused if it grows on; None where it does not, or nobody knows."""
    kinds: tuple[StoredShare, ...]
    """Estimated bytes of envelopes by kind, the largest first."""
    payers: tuple[StoredShare, ...]
    """By the ten largest payers, ``others``, and ``nobody`` for the chain's."""
    expiries: tuple[StoredShare, ...]
    """By when they expire: ``expired``, within ``1 d``, ``7 d`` and not before, and so on."""
    sizes: tuple[SizeOfDay, ...]
    """The last 90 days, in rising order."""
