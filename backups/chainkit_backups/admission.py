"""How much may still be uploaded, by kind, by address and in total; no I/O, the clock is passed in.

Bytes count from the moment of their arrival until their file is removed. After a restart the files
count in the total, and for no address: addresses are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from chainkit.service.allowance import Buckets, Held
from chainkit_backups.types import Full, Kind, Limits, NotAllowed, Stored, TooLarge, TooMuch

_UPLOADS_PER_SECOND: Final = 0.1
_UPLOADS_AT_ONCE: Final = 30
_DOWNLOADS_PER_SECOND: Final = 5.0
_DOWNLOADS_AT_ONCE: Final = 100

MOST_DOWNLOADS: Final = 50
"""How often the bytes of one file are sent at most: the service is no public file host."""


class Admission:
    """Counts what is kept and what comes; used on the event loop's thread."""

    def __init__(
        self, limits: Mapping[Kind, Limits], kept: Iterable[Stored], clock: Callable[[], float]
    ) -> None:
        """Take the limits of each kind, the files of an earlier run, and a clock in seconds."""
        self.limits = limits
        self._clock = clock
        self._held = {
            kind: Held(each.total_bytes, each.address_bytes) for kind, each in limits.items()
        }
        for each in kept:
            # No limit of an address holds for files whose address nobody knows any more.
            self._held[each.kind].take("", each.size)
        self._uploads = Buckets(_UPLOADS_PER_SECOND, _UPLOADS_AT_ONCE)
        self._downloads = Buckets(_DOWNLOADS_PER_SECOND, _DOWNLOADS_AT_ONCE)

    def begin_upload(self, kind: Kind, address: str, length: int | None) -> None:
        """Let an address begin an upload; ``length`` is the announced number of bytes.

        Raises NotAllowed, TooMuch, TooLarge and Full.
        """
        self._take(self._uploads, address, "uploads")
        if not self.limits[kind].total_bytes:
            expected = "an upload URL with a grant" if kind is Kind.OPEN else "one without a grant"
            raise NotAllowed("upload", expected, f"an upload of kind {kind}")
        if length is not None:
            self._check(kind, address, 0, length)

    def begin_download(self, stored: Stored, address: str) -> None:
        """Let an address download a file, or a part. Raises TooMuch."""
        self._take(self._downloads, address, "downloads")
        if stored.sent >= MOST_DOWNLOADS * stored.size:
            raise TooMuch("downloads of the file", f"at most {MOST_DOWNLOADS}", "more")

    def take(self, stored: Stored, length: int) -> None:
        """Count more bytes of an upload. Raises TooLarge, TooMuch and Full, and counts nothing."""
        self._check(stored.kind, stored.address, stored.size, length)
        self._held[stored.kind].take(stored.address, length)

    def give_back(self, stored: Stored, length: int) -> None:
        """Count bytes of a file no more, which was removed or not kept."""
        self._held[stored.kind].give_back(stored.address, length)

    def total(self, kind: Kind) -> int:
        """Return the bytes that are kept of a kind, with those of uploads under way."""
        return self._held[kind].total

    def _check(self, kind: Kind, address: str, size: int, length: int) -> None:
        limits, held = self.limits[kind], self._held[kind]
        if size + length > limits.file_bytes:
            raise TooLarge("file", f"at most {limits.file_bytes} bytes", "more")
        if not held.has_room_for(address, length):
            expected = f"at most {limits.address_bytes} bytes of an address"
            raise TooMuch("files", expected, "more")
        if not held.has_room(length):
            raise Full("storage service", f"at most {limits.total_bytes} bytes in all", "more")

    def _take(self, buckets: Buckets, address: str, what: str) -> None:
        now = self._clock()
        if (seconds := buckets.seconds_to_wait(address, now)) > 0:
            refusal = TooMuch(what, "fewer of an address", "more", f"again in {seconds:.0f} s")
            refusal.retry_seconds = seconds
            raise refusal
        buckets.take(address, now)
