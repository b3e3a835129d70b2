"""Requests that are not whole or not answered yet, counted for each address and for all.

Envoy ends a request that takes too long. Until then one address must not take the places and the
memory of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chainkit.service.refusals import Overloaded, OverShare

UNFINISHED: Final = "unfinished"
"""The reason of a refusal: too many requests, or bytes of requests, under way."""
TOO_LARGE: Final = "too_large"
"""The reason of a refusal: one request is longer than its method's may be."""

_ALL: Final = ""


@dataclass(frozen=True, slots=True)
class UnfinishedLimits:
    """How much may be under way; 0 for no limit."""

    requests_of_one: int = 1000
    """Requests of one address that are not whole."""
    requests: int = 10_000
    bytes_of_one: int = 32 << 20
    """Bytes of one address's requests that are not whole, or whose only answer is not ready."""
    bytes: int = 256 << 20


class Unfinished:
    """Counts requests; used on the event loop's thread."""

    def __init__(
        self, limits: UnfinishedLimits, refused: Callable[[str], None] = lambda reason: None
    ) -> None:
        """Begin with none; ``refused`` is called for each refusal, with its reason."""
        self._limits = limits
        self.refused = refused
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def enter(self, address: str) -> Place:
        """Return the place of a request whose headers came. Raises Overloaded."""
        limits = self._limits
        of_one, of_all = self._requests[address] + 1, self._requests[_ALL] + 1
        self._check("unfinished requests", of_one, limits.requests_of_one, OverShare)
        self._check("unfinished requests of all", of_all, limits.requests, Overloaded)
        return Place(self, address)

    def count(self, address: str, requests: int, length: int) -> None:
        """Change both counts of an address."""
        for counted, change in ((self._requests, requests), (self._bytes, length)):
            for name in (address, _ALL):
                counted[name] += change
                if not counted[name]:
                    del counted[name]

    def check_bytes(self, address: str) -> None:
        """Raise Overloaded where too many bytes are under way."""
        limits = self._limits
        of_one, of_all = self._bytes[address], self._bytes[_ALL]
        self._check("bytes under way", of_one, limits.bytes_of_one, OverShare)
        self._check("bytes under way of all", of_all, limits.bytes, Overloaded)

    def _check(self, subject: str, count: int, limit: int, kind: type[Overloaded]) -> None:
        if limit and count > limit:
            self.refused(UNFINISHED)
            raise kind(subject, f"at most {limit}", "more")


class Place:
    """The place of one request, until it is whole or answered."""

    def __init__(self, unfinished: Unfinished, address: str) -> None:
        """Take the place."""
        self._unfinished = unfinished
        self._address = address
        self._length = 0
        self._is_whole = False
        unfinished.count(address, 1, 0)

    def grow(self, length: int) -> None:
        """Count further bytes. Raises Overloaded."""
        self._length += length
        self._unfinished.count(self._address, 0, length)
        self._unfinished.check_bytes(self._address)

    def whole(self) -> None:
        """Take note that the request is whole; its bytes stay counted."""
        if not self._is_whole:
            self._is_whole = True
            self._unfinished.count(self._address, -1, 0)

    def leave(self) -> None:
        """Give up the place."""
        self.whole()
        self._unfinished.count(self._address, 0, -self._length)
        self._length = 0
