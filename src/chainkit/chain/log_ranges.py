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
_PIECES_UNTIL_WIDER: Final = 64
"""After a refusal, pieces grow again only then: to be refused may take a time-out."""


def logs_by_pieces(
    endpoint: Endpoint, first: int, last: int, wanted: LogFilter
) -> Iterator[tuple[int, list[Log]]]:
    """Yield how many blocks each piece of a range held, and its logs in chain order.

    Both ends are included. Raises as ``Endpoint.logs`` but RangeRefused: of one block, which no
    range is, a refusal is EndpointUnavailable.
    """
    width, pieces_until_wider = _FIRST_BLOCKS, 0
    while first <= last:
        end = min(last, first + width - 1)
        asked = end - first + 1
        try:
            logs = endpoint.logs(first, end, wanted.addresses, wanted.topics)
        except RangeRefused as error:
            width = max(1, min(error.suggested_blocks or asked, asked // 2))
            pieces_until_wider = _PIECES_UNTIL_WIDER
            continue
        yield asked, logs
        first = end + 1
        if pieces_until_wider:
            pieces_until_wider -= 1
        else:
            width = min(2 * width, _MOST_BLOCKS)
