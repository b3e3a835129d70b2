"""Lines of a log that repeat: the first few are written, the others are counted.

A cause that lasts, such as a full disk or an endpoint that lags, gives other numbers each time, and
one that flaps comes and goes. So lines that differ in numbers alone share an allowance. Strangers
choose words of some lines: the lines of one event share an allowance, too.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from chainkit.service.allowance import Buckets

ALIKE: Final = 3
"""Lines of one kind that are written at once; then one in ``ALIKE_SECONDS``."""

ALIKE_SECONDS: Final = 600.0

OF_ONE_EVENT: Final = 30
"""Lines of one event that are written at once; then one in ``EVENT_SECONDS``."""

EVENT_SECONDS: Final = 60.0

_MOST_KINDS: Final = 1_000
_KEPT: Final = r"\b\w[\w+.-]*://\S+|\b(?:node|originator|peer) \d+"
_NUMBER: Final = re.compile(rf"({_KEPT})|\b0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*")


class LogLimits:
    """Judges line after line; for several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock in seconds that only grows."""
        self._clock = clock
        self._lock = threading.Lock()
        self._by_kind = Buckets(1 / ALIKE_SECONDS, ALIKE, _MOST_KINDS)
        self._by_event = Buckets(1 / EVENT_SECONDS, OF_ONE_EVENT, _MOST_KINDS)
        self._left_out: OrderedDict[str, int] = OrderedDict()

    def admit(self, event: str, text: str) -> int | None:
        """Return how many lines like this one were left out before, None to leave out this one."""
        kind = f"{event} {kind_of(text)}"
        with self._lock:
            now = self._clock()
            if self._by_kind.seconds_to_wait(kind, now) or self._by_event.seconds_to_wait(
                event, now
            ):
                self._left_out[kind] = self._left_out.get(kind, 0) + 1
                while len(self._left_out) > _MOST_KINDS:
                    self._left_out.popitem(last=False)
                return None
            self._by_kind.take(kind, now)
            self._by_event.take(event, now)
            return self._left_out.pop(kind, 0)


def kind_of(text: str) -> str:
    """Return a text without its numbers and hashes; URLs and ids of nodes stay."""
    return _NUMBER.sub(lambda found: found[1] or "#", text)
