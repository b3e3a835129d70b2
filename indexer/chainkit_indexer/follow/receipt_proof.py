"""Proves by receipts that blocks with proved headers hold these logs of a contract, and no more.

A block whose bloom filter lacks the contracts holds none of their logs. All receipts of every other
block are read: they must have the root that the block's header names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest
from typing import Final
from weakref import WeakKeyDictionary

from chainkit.chain import Endpoint, LogFilter
from chainkit.chain.block_proof import read_proved_logs
from chainkit.errors import (
    AccessRefused,
    Disproved,
    EndpointFault,
    EndpointTimedOut,
    OversizedAnswer,
    RefusedRequest,
    Unprovable,
)
from chainkit.ethereum.bloom import may_hold
from chainkit.types import BlockHeader, Log

_ASK_AGAIN_SECONDS: Final = 600.0
"""How long an endpoint that offered no receipts is not asked for them."""

_FOREIGN_TRANSACTIONS: Final = 16
"""So many transactions for each log make a second endpoint cheaper than the receipts."""


class ReceiptProof:
    """Proves the logs of some contracts. Remembers which endpoints offer no receipts."""

    def __init__(
        self,
        wanted: LogFilter,
        masks: Collection[int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what logs are read, and the bits that they set in a bloom filter."""
        self._wanted = wanted
        self._masks = masks
        self._clock = clock
        self._offers_again: WeakKeyDictionary[Endpoint, float] = WeakKeyDictionary()
        """When an endpoint that offers no receipts is asked again."""

    def prove(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log]
    ) -> str | None:
        """Return None if the wanted logs of some blocks are these, or else why nothing proves it.

        Raises Disproved where they are others, or one of the endpoint's answers is wrong.
        """
        unknown = next((header for header in headers if header.roots is None), None)
        if unknown is not None:
            return f"the header of block {unknown.number} with fields that are not known here"
        if self._clock() < self._offers_again.get(endpoint, 0.0):
            return "no receipts of blocks"
        try:
            proved = read_proved_logs(endpoint, self._affirmed(headers), self._wanted)
        except AccessRefused:
            raise
        except (Unprovable, EndpointTimedOut, OversizedAnswer) as error:
            return str(error)
        except (RefusedRequest, EndpointFault) as error:
            self._offers_again[endpoint] = self._clock() + _ASK_AGAIN_SECONDS
            return f"no receipts of blocks ({error})"
        for given, own in zip_longest(logs, proved):
            if given != own:
                subject = f"logs of blocks {headers[0].number} to {headers[-1].number}"
                expected = "no log there" if own is None else "the log of the receipts"
                got = "no log there" if given is None else "another log"
                place = (own or given).place
                raise Disproved(f"{subject} at {endpoint.name}", expected, got, place)
        return None

    def are_of_others(self, headers: Sequence[BlockHeader], logs: Sequence[Log]) -> bool:
        """Tell whether most of the receipts to read would be of other contracts."""
        transactions = sum(header.transaction_count for header in self._affirmed(headers))
        return transactions > _FOREIGN_TRANSACTIONS * max(len(logs), 1)

    def _affirmed(self, headers: Sequence[BlockHeader]) -> list[BlockHeader]:
        return [
            header
            for header in headers
            if header.logs_bloom is None
            or any(may_hold(header.logs_bloom, mask) for mask in self._masks)
        ]
