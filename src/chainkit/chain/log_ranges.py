"""The logs of a long range, in pieces as wide as the endpoint gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chainkit.chain.endpoint import Endpoint
from chainkit.chain.logs import LogFilter
from chainkit.errors import RangeRefused
from chainkit.types import Log

_FIRST_BLOCKS: Final = 10_000
_MOST_BLOCKS: Final = 1_000_000
_ANSWERS_UNTIL_WIDER: Final = 64
"""After a refusal, ranges grow again only then: to be refused may take a time-out."""


class RangeWidth:
    """How many blocks to ask an endpoint for: fewer when refused, twice as many when answered."""

    def __init__(self, first: int = _FIRST_BLOCKS, most: int = _MOST_BLOCKS) -> None:
        """Begin with ``first`` blocks; never exceed ``most``."""
        self._most = most
        self._ceiling = most
        self._answers_until_wider = 0
        self._is_refused = False
        self.blocks = min(first, most)

    def refused(self, asked: int, suggested: int | None = None) -> None:
        """Record that ``asked`` blocks were refused; the endpoint ``suggested`` a width, or none.

        A suggestion that was refused as well is not followed again until an answer has come.
        """
        if suggested is None or suggested >= asked or self._is_refused:
            suggested = asked // 2
        self.blocks = self._ceiling = max(1, suggested)
        self._answers_until_wider, self._is_refused = _ANSWERS_UNTIL_WIDER, True

    def answered(self, asked: int, fitting: int | None = None) -> None:
        """Record an answer; ``fitting`` is how many such blocks the caller can take."""
        self._is_refused = False
        if self._answers_until_wider:
            self._answers_until_wider -= 1
        else:
            self._ceiling = self._most
        # A thread that looks ahead may have been answered over more blocks meanwhile.
        wider = min(2 * max(asked, self.blocks), self._ceiling)
        self.blocks = max(1, wider if fitting is None else min(wider, fitting))


def logs_by_pieces(
    endpoint: Endpoint, first: int, last: int, wanted: LogFilter
) -> Iterator[tuple[int, list[Log]]]:
    """Yield how many blocks each piece of a range held, and its logs in chain order.

    Both ends are included. Raises the errors of ``Endpoint.logs`` except RangeRefused: the refusal
    of a single block is EndpointUnavailable.
    """
    width = RangeWidth()
    while first <= last:
        end = min(last, first + width.blocks - 1)
        asked = end - first + 1
        try:
            logs = endpoint.logs(first, end, wanted.addresses, wanted.topics, wanted.argument)
        except RangeRefused as error:
            width.refused(asked, error.suggested_blocks)
            continue
        width.answered(asked)
        yield asked, logs
        first = end + 1
