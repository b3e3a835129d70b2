"""How fast refusals are answered: a caller with few is answered at once, one with many later.

A refused request costs its caller nothing, and the service almost what an answered one costs. A
caller that waits for its refusals sends no others meanwhile, and one that does not wait has no more
calls than Envoy allows its connections. So late refusals bound what a caller's bad requests take of
the processor, without a further bound that an honest caller could meet.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from chainkit.service.allowance import Buckets, Held

BYTES_OF_A_REFUSAL: Final = 16 << 10
"""Bytes of a refused request that count as one more refusal."""


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """How many refusals are answered at once, and how late others are."""

    per_second: float = 20
    """To one address, in the long run."""
    burst: float = 300
    """To one address, at once."""
    seconds: float = 10
    """How late a refusal is, at most; half of the time to the caller's deadline at most, too."""
    late: int = 1500
    """Refusals of all addresses that wait, of some 35 KiB each; others are answered at once."""
    late_of_one: int = 500
    """To one address."""


class RefusalPace:
    """Used on the event loop's thread."""

    def __init__(self, limits: PaceLimits = PaceLimits()) -> None:
        """Begin with full buckets."""
        self._limits = limits
        self._buckets = Buckets(limits.per_second, limits.burst)
        self._ends = asyncio.Event()
        self._waiting = Held(limits.late, limits.late_of_one)

    @property
    def waiting(self) -> int:
        """How many refusals wait."""
        return self._waiting.total

    def end(self) -> None:
        """Let nobody wait any more."""
        self._ends.set()

    def late(self, address: str, now: float) -> float:
        """Return the seconds for which a refusal of an address waits at this moment."""
        return self._buckets.seconds_to_wait(address, now, 0.0)

    async def wait(self, address: str, length: int, seconds_left: float | None) -> None:
        """Wait until a request of so many bytes may be refused, as the caller's deadline allows."""
        limits = self._limits
        now = asyncio.get_running_loop().time()
        # An address never owes more than the longest wait.
        if self.late(address, now) < limits.seconds:
            self._buckets.take(address, now, 1 + length // BYTES_OF_A_REFUSAL)
        late = min(self.late(address, now), limits.seconds)
        if seconds_left is not None:
            late = min(late, seconds_left / 2)
        waiting = self._waiting
        if late <= 0 or not (waiting.has_room(1) and waiting.has_room_for(address, 1)):
            return
        waiting.take(address, 1)
        try:
            async with asyncio.timeout(late):
                await self._ends.wait()
        except TimeoutError:
            return
        finally:
            waiting.give_back(address, 1)
