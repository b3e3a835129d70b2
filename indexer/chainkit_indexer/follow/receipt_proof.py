"""Proves by receipts that blocks with proved headers hold these logs of a contract, and no more.

A block whose bloom filter lacks the contracts holds no logs of these. All receipts of every other
block are read: they must have the root in the block's header.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import Final
from weakref import WeakKeyDictionary

from chainkit.chain import Endpoint, LogFilter
from chainkit.chain.block_proof import proved_logs
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
"""How long an endpoint that offered no receipts is not asked for receipts."""

_FOREIGN_TRANSACTIONS: Final = 16
"""So many transactions for each log make a second endpoint cheaper than the receipts."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How far the receipts of some blocks prove their logs."""

    blocks: int
    """How many are proved, from the first on."""
    doubt: str = ""
    """Why the next one is not; empty where there is none."""


class ReceiptProof:
    """Proves the logs of some contracts. Remembers which endpoints offer no receipts."""

    def __init__(
        self,
        wanted: LogFilter,
        masks: Collection[int],
        chain_id: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the logs to be read, their bits in a bloom filter, and the chain."""
        self._wanted = wanted
        self._masks = masks
        self._chain_id = chain_id
        self._clock = clock
        self._offers_again: WeakKeyDictionary[Endpoint, float] = WeakKeyDictionary()
        """When an endpoint that offers no receipts is asked again."""

    def prove(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log]
    ) -> Proof:
        """Return how many of some blocks hold exactly these of the wanted logs.

        Raises Disproved where they hold other logs, or one of the endpoint's answers is wrong.
        """
        if self._clock() < self._offers_again.get(endpoint, 0.0):
            return Proof(0, "no receipts")
        known = list(takewhile(lambda header: header.roots is not None, headers))
        proof = self._by_receipts(endpoint, known, logs)
        if proof.doubt or len(known) == len(headers):
            return proof
        unknown = headers[len(known)]
        return Proof(len(known), f"the header of block {unknown.number} {unknown.doubt}")

    def _by_receipts(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log]
    ) -> Proof:
        affirmed = self._affirmed(headers)
        proved: list[list[Log]] = []
        doubt = ""
        try:
            for of_block in proved_logs(endpoint, affirmed, self._wanted, self._chain_id):
                proved.append(of_block)
        except AccessRefused:
            raise
        except (Unprovable, EndpointTimedOut, OversizedAnswer) as error:
            doubt = str(error)
        except (RefusedRequest, EndpointFault) as error:
            self._offers_again[endpoint] = self._clock() + _ASK_AGAIN_SECONDS
            return Proof(0, f"no receipts ({error})")
        blocks = headers if not doubt else headers[: headers.index(affirmed[len(proved)])]
        numbers = {header.number for header in blocks}
        given = [log for log in logs if log.block_number in numbers]
        _compare(endpoint, blocks, given, [log for of_block in proved for log in of_block])
        return Proof(len(blocks), doubt)

    def are_of_others(self, headers: Sequence[BlockHeader], logs: Sequence[Log]) -> bool:
        """Return whether most of the receipts to read would be of other contracts."""
        transactions = sum(header.transaction_count for header in self._affirmed(headers))
        return transactions > _FOREIGN_TRANSACTIONS * max(len(logs), 1)

    def _affirmed(self, headers: Sequence[BlockHeader]) -> list[BlockHeader]:
        return [
            header
            for header in headers
            if header.logs_bloom is None
            or any(may_hold(header.logs_bloom, mask) for mask in self._masks)
        ]


def _compare(
    endpoint: Endpoint, blocks: Sequence[BlockHeader], logs: Sequence[Log], proved: Sequence[Log]
) -> None:
    """Raise Disproved where the answered logs are not the proved ones."""
    for given, own in zip_longest(logs, proved):
        if given != own:
            subject = f"logs of blocks {blocks[0].number} to {blocks[-1].number}"
            expected = "no log there" if own is None else "the log of the receipts"
            got = "no log there" if given is None else "another log"
            place = (own or given).place
            raise Disproved(f"{subject} at {endpoint.name}", expected, got, place)
