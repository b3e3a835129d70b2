"""Establishes a page before anything of it is signed: by proof, or by a second endpoint.

The headers' hashes were computed when they were read, and each links to the one before. Their bloom
filters, which the hashes bind, say which blocks hold no payload; the receipts of all others prove
their logs. Where that cannot be had, an endpoint of another host must say the same of the page.
What is left is one endpoint's word, which only the operator's option makes enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final
from weakref import WeakKeyDictionary

from chainkit.chain import Endpoint
from chainkit.chain.block_proof import read_proved_logs
from chainkit.errors import (
    AccessRefused,
    ChainError,
    Disproved,
    EndpointFault,
    InconsistentAnswer,
    RangeRefused,
    RefusedRequest,
    Unconfirmed,
    Unprovable,
)
from chainkit.ethereum.bloom import may_hold
from chainkit.types import BlockHeader, Log
from chainkit_indexer.follow.fetch import PayloadLogs
from chainkit_indexer.types import Provenance

OtherEndpoints = Callable[[Endpoint], Sequence[Endpoint]]
"""Returns the endpoints of other hosts that may be asked now, in the operator's order."""

_ASK_AGAIN_SECONDS: Final = 600.0
"""How long an endpoint that offered no receipts is not asked for them."""

_FOREIGN_TRANSACTIONS: Final = 16
"""So many transactions for each payload make a second endpoint cheaper than the receipts."""


class PageProver:
    """Establishes what endpoints say of pages, in the strongest way that they offer."""

    def __init__(
        self,
        payload_logs: PayloadLogs,
        others: OtherEndpoints = lambda endpoint: (),
        trusts_one_endpoint: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take one endpoint's word only with ``trusts_one_endpoint``."""
        self._payload_logs = payload_logs
        self._others = others
        self._trusts_one_endpoint = trusts_one_endpoint
        self._clock = clock
        self._offers_again: WeakKeyDictionary[Endpoint, float] = WeakKeyDictionary()
        """When an endpoint that offers no receipts is asked again."""

    def establish(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log], deep: bool
    ) -> Provenance:
        """Return how the payload logs of consecutive linked blocks were established.

        Blocks that are ``deep`` below the head may be confirmed by a second endpoint where most of
        their receipts are of other contracts. Raises Disproved where the endpoint's answers
        contradict a proof, InconsistentAnswer where no other endpoint says the same, and
        Unconfirmed where none can be asked.
        """
        others = self._others(endpoint)
        doubt = self._proof(endpoint, headers, logs, spares_receipts=deep and bool(others))
        if doubt is None:
            return Provenance.RECEIPTS
        if others:
            self._confirm(endpoint, others, headers, logs)
            return Provenance.SECOND_ENDPOINT
        if self._trusts_one_endpoint:
            return Provenance.ONE_ENDPOINT
        raise Unconfirmed(
            f"blocks {headers[0].number} to {headers[-1].number} at {endpoint.name}",
            "a proof, or a second endpoint of another host",
            doubt,
            "give another --rpc, or take this endpoint's word with --trust-one-endpoint",
        )

    # ------------------------------------------------------------------ receipts

    def _proof(
        self,
        endpoint: Endpoint,
        headers: Sequence[BlockHeader],
        logs: Sequence[Log],
        spares_receipts: bool,
    ) -> str | None:
        """Prove the logs; return None, or why that cannot be done."""
        unknown = next((header for header in headers if header.roots is None), None)
        if unknown is not None:
            return f"the header of block {unknown.number} with fields that are not known here"
        if self._clock() < self._offers_again.get(endpoint, 0.0):
            return "no receipts of blocks"
        affirmed = [header for header in headers if self._may_hold_payloads(header)]
        transactions = sum(header.transaction_count for header in affirmed)
        if spares_receipts and transactions > _FOREIGN_TRANSACTIONS * max(len(logs), 1):
            return "receipts of other contracts for the most part"
        try:
            proved = read_proved_logs(endpoint, affirmed, self._payload_logs.wanted)
        except AccessRefused:
            raise
        except Unprovable as error:
            return str(error)
        except (RefusedRequest, EndpointFault) as error:
            self._offers_again[endpoint] = self._clock() + _ASK_AGAIN_SECONDS
            return f"no receipts of blocks ({error})"
        for given, own in zip_longest(logs, proved):
            if given != own:
                place = (own or given).place
                subject = f"logs of blocks {headers[0].number} to {headers[-1].number}"
                got = "no log there" if given is None else "another log"
                expected = "no log there" if own is None else "the log of the receipts"
                raise Disproved(f"{subject} at {endpoint.name}", expected, got, place)
        return None

    def _may_hold_payloads(self, header: BlockHeader) -> bool:
        bloom = header.logs_bloom
        return bloom is None or any(
            may_hold(bloom, mask) for mask in self._payload_logs.masks.values()
        )

    # ------------------------------------------------------------------ a second endpoint

    def _confirm(
        self,
        endpoint: Endpoint,
        others: Sequence[Endpoint],
        headers: Sequence[BlockHeader],
        logs: Sequence[Log],
    ) -> None:
        """Return if one of the others says the same. Raises the first one's error if none does."""
        failure: ChainError | None = None
        for other in others:
            try:
                self._compare(endpoint, other, headers, logs)
            except ChainError as error:
                failure = failure or error
            else:
                return
        if failure is not None:
            raise failure

    def _compare(
        self,
        endpoint: Endpoint,
        other: Endpoint,
        headers: Sequence[BlockHeader],
        logs: Sequence[Log],
    ) -> None:
        first, last = headers[0].number, headers[-1].number
        try:
            theirs, found = other.blocks_with_logs(first, last, self._payload_logs.wanted)
        except RangeRefused:
            if first == last:
                raise
            middle = (first + last) // 2
            for part in (range(first, middle + 1), range(middle + 1, last + 1)):
                self._compare(
                    endpoint,
                    other,
                    [header for header in headers if header.number in part],
                    [log for log in logs if log.block_number in part],
                )
            return
        subject = f"blocks {first} to {last}"
        if None in theirs:
            raise Unconfirmed(
                f"{subject} at {other.name}", f"all blocks of {endpoint.name}", "fewer"
            )
        for own, header in zip(headers, theirs, strict=True):
            if header is not None and own != header:
                got = f"0x{header.hash.hex()}"
                expected = f"block {own.number} 0x{own.hash.hex()} as at {endpoint.name}"
                raise InconsistentAnswer(f"{subject} at {other.name}", expected, got)
        if list(logs) != found:
            expected, got = f"the logs of {endpoint.name}", "others"
            raise InconsistentAnswer(f"{subject} at {other.name}", expected, got)
