"""Where files are kept for longer than the process runs: a folder on disk, or a bucket."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from chainkit.service.upload_grant import Grant
from chainkit_backups.types import Stored


class Content(Protocol):
    """The bytes of a file, from where it was opened; a context that closes it."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Close it."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, none at the end. Raises OSError."""


class Place(Protocol):
    """Keeps files by kind and id, and the ids of used grants.

    Its methods block, are called by several threads, and raise OSError. Nothing is written over:
    what is there stays as it is.
    """

    def read(self) -> tuple[list[Stored], dict[str, float]]:
        """Return all kept files, and used grants: id in hex to the end of the grant."""

    def keep(self, arrived: Path, stored: Stored) -> None:
        """Take a finished file, until its moment of expiry; ``arrived`` is gone afterwards."""

    def open(self, stored: Stored, begin: int) -> Content:
        """Open a file from a byte on. Raises FileNotFoundError where it was removed."""

    def expire(self, stored: Stored) -> None:
        """Make durable that a file expires earlier than it did, at ``expires_at``."""

    def remove(self, stored: Stored) -> None:
        """Remove a file, if it is there."""

    def use(self, grant: Grant) -> None:
        """Make durable that a grant was used. Raises AlreadyUsed where another process did."""

    def forget(self, grant_id: str, until: float) -> None:
        """Forget a used grant, whose end and id in hex are given."""
