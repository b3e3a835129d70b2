"""How much callers of one class still may ask for, each and all together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from chainkit.service.allowance import Buckets
from chainkit.service.places import Places
from chainkit.service.refusals import OverShare
from chainkit_node.asked_by import AskedBy
from chainkit_node.settings import CallerLimits

_MOMENT_SECONDS: Final = 1.0
"""How long the answer of a call waits because of what its caller got before."""

PARTS_OF_A_REQUEST: Final = 10
"""Topics, or other parts, that count as one request."""
BYTES_OF_A_REQUEST: Final = 16 << 10
"""Bytes that count as one request."""


class CallerLimiter:
    """Counts what each caller and all together ask for; used on the event loop's thread.

    A caller has a name, such as an address.
    """

    def __init__(self, limits: CallerLimits, sort: str, clock: Callable[[], float]) -> None:
        """Take the limits, and what one caller is, in a word such as ``address``.

        The clock is in seconds, and only grows.
        """
        self._limits = limits
        self._sort = sort
        self._clock = clock
        self._requests = Buckets(limits.requests_per_second, limits.request_burst)
        self._tokens = Buckets(limits.requests_per_second, limits.request_burst)
        self._bytes = Buckets(limits.answer_bytes_per_second, limits.answer_bytes_per_second)
        self._published = Buckets(limits.publish_bytes_per_second, limits.publish_burst_bytes)
        self._calls = Places("calls at a time", sort, limits.calls, limits.calls_of_one)
        self._streams = Places("open streams", sort, limits.streams, limits.streams_of_one)
        of_requests = limits.filter_bytes, limits.filter_bytes_of_one
        self._filters = Places("bytes of streams' requests", sort, *of_requests)

    def open_streams(self) -> int:
        """Count the open streams of all callers."""
        return self._streams.total

    def asked_by(self, name: str) -> AskedBy:
        """Return a caller, as the parts that answer its request know it."""
        return AskedBy(f"{self._sort} {name}", lambda parts: self._charge_parts(name, parts))

    def admit(self, name: str) -> None:
        """Count a request. Raises Overloaded above the caller's rate."""
        self._check(self._requests, name, "requests")
        self._requests.take(name, self._clock())

    def check_tokens(self, name: str) -> None:
        """Raise Overloaded where a caller has shown too many tokens that were refused."""
        self._check(self._tokens, name, "refused tokens")

    def refused_token(self, name: str) -> None:
        """Count a token that was refused."""
        self._tokens.take(name, self._clock())

    def _check(self, buckets: Buckets, name: str, things: str) -> None:
        if wait := buckets.seconds_to_wait(name, self._clock()):
            most = f"at most {self._limits.requests_per_second:g} a second from one {self._sort}"
            raise OverShare(things, most, f"more; try again in {wait:.3f} s")

    def charge(self, name: str, length: int) -> None:
        """Count a request of many bytes as several; the caller's next request waits for them."""
        self._requests.take(name, self._clock(), length // BYTES_OF_A_REQUEST)

    def _charge_parts(self, name: str, parts: int) -> None:
        self._requests.take(name, self._clock(), parts // PARTS_OF_A_REQUEST)

    @contextmanager
    def publish(self, name: str, length: int) -> Iterator[None]:
        """Count the bytes of a request to publish, unless it is refused. Raises Overloaded."""
        if wait := self._published.seconds_to_wait(name, self._clock()):
            most = f"at most {self._limits.publish_bytes_per_second} bytes a second"
            expected = f"{most} from one {self._sort}"
            raise OverShare("publish", expected, f"more; try again in {wait:.3f} s")
        self._published.take(name, self._clock(), length)
        try:
            yield
        except BaseException:
            self._published.take(name, self._clock(), -length)
            raise

    def call(self, name: str) -> AbstractContextManager[None]:
        """Hold the place of one call. Raises Overloaded."""
        return self._calls.hold(name)

    @contextmanager
    def stream(self, name: str, request_bytes: int) -> Iterator[None]:
        """Hold the place of one stream, and of its request. Raises Overloaded."""
        with self._streams.hold(name), self._filters.hold(name, request_bytes):
            yield

    async def pace_call(self, name: str) -> None:
        """Wait for a moment until the caller may have more bytes. Raises Overloaded."""
        while wait := self._bytes.seconds_to_wait(name, self._clock()):
            if wait > _MOMENT_SECONDS:
                most = f"at most {self._limits.answer_bytes_per_second} bytes a second"
                raise OverShare("answers", most, f"more; try again in {wait:.3f} s")
            await asyncio.sleep(wait)

    async def pace_frame(self, name: str) -> None:
        """Wait until the caller may have more bytes."""
        while wait := self._bytes.seconds_to_wait(name, self._clock()):
            await asyncio.sleep(wait)

    def sent(self, name: str, length: int) -> None:
        """Count bytes that the caller gets."""
        self._bytes.take(name, self._clock(), length)
