"""Establishes a page before anything of it is signed: by proof, or by a second endpoint.

The headers' hashes were computed when they were read, and each header links to the one before. The
bloom filters, to which the hashes commit, show which blocks hold no payload; the receipts of all
other blocks prove their logs. A page ends before the first block without such a proof. For the page
that begins with this block, an endpoint of another host must give the same answer. Otherwise only
one endpoint's answer is left, which is enough only by the operator's option.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chainkit.chain import Endpoint
from chainkit.errors import ChainError, InconsistentAnswer, RangeRefused, Unconfirmed
from chainkit.types import BlockHeader, Log
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.fetch import PayloadLogs
from chainkit_indexer.follow.receipt_proof import Proof, ReceiptProof
from chainkit_indexer.types import Provenance


@dataclass(frozen=True, slots=True)
class Established:
    """How the first blocks of a page were established."""

    provenance: Provenance
    blocks: int
    """How many: all, or those before the first one that the endpoint does not prove."""


OtherEndpoints = Callable[[Endpoint], Sequence[Endpoint]]
"""Returns the endpoints of other hosts that may be asked now, in the operator's order."""


class PageProver:
    """Establishes the pages of endpoints, in the strongest way that the endpoints offer."""

    def __init__(
        self,
        settings: IndexerSettings,
        others: OtherEndpoints = lambda endpoint: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask ``others`` where an endpoint does not prove its own answer."""
        payload_logs = PayloadLogs(settings.deployment)
        self._wanted = payload_logs.wanted
        chain_id = settings.deployment.chain_id
        self._receipts = ReceiptProof(self._wanted, payload_logs.masks.values(), chain_id, clock)
        self._others = others
        self._trusts_one_endpoint = settings.trusts_one_endpoint

    def establish(
        self, endpoint: Endpoint, headers: Sequence[BlockHeader], logs: Sequence[Log], deep: bool
    ) -> Established:
        """Return how the payload logs of consecutive linked blocks were established, and how many.

        Blocks up to the first one that the endpoint does not prove are established by receipts; if
        this is the first block, all blocks are established in a weaker way. Blocks that are
        ``deep`` below the head may be confirmed by a second endpoint where most of their receipts
        are of other contracts. Raises Disproved where the endpoint's answers contradict a proof,
        InconsistentAnswer where no other endpoint gives the same answer, and Unconfirmed where no
        other can be asked.
        """
        others = self._others(endpoint)
        if deep and others and self._receipts.are_of_others(headers, logs):
            proof = Proof(0, "receipts of other contracts for the most part")
        else:
            proof = self._receipts.prove(endpoint, headers, logs)
        if proof.blocks:
            return Established(Provenance.RECEIPTS, proof.blocks)
        if others:
            self._confirm(endpoint, others, headers, logs)
            return Established(Provenance.SECOND_ENDPOINT, len(headers))
        if self._trusts_one_endpoint:
            return Established(Provenance.ONE_ENDPOINT, len(headers))
        raise Unconfirmed(
            f"blocks {headers[0].number} to {headers[-1].number} at {endpoint.name}",
            "a proof, or a second endpoint of another host",
            proof.doubt,
            "give another --rpc, or take this endpoint's word with --trust-one-endpoint",
        )

    def _confirm(
        self,
        endpoint: Endpoint,
        others: Sequence[Endpoint],
        headers: Sequence[BlockHeader],
        logs: Sequence[Log],
    ) -> None:
        """Return if another endpoint gives the same answer. Raises the first error if none does."""
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
            theirs, found = other.blocks_with_logs(first, last, self._wanted)
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
