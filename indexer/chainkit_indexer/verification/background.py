"""Proves stored blocks while the chain is followed: a piece at a time, when nothing else is to do.

Blocks that only an endpoint's answer establishes may be proved later, by an endpoint that offers
more. Only final blocks are taken: they never change, whatever branch an endpoint is on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from chainkit.chain import Endpoint
from chainkit.chain.backoff import Backoff
from chainkit.errors import ChainError, Disproved, RateLimited, Unconfirmed
from chainkit.service.log_lines import LogEvent, log_event
from chainkit_indexer.background_task import BackgroundTask
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import OtherEndpoints, PageProver
from chainkit_indexer.follow.signing import NoKey
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import IndexedBlock, ProvenanceRun
from chainkit_indexer.verification.page_comparison import Difference
from chainkit_indexer.verification.prove import RunProof, next_stored_block, unproved_runs
from chainkit_indexer.verification.verify import block_before, page_after_block

PIECE_BLOCKS: Final = 128
"""Read at once: the steps of new blocks wait for a piece."""

_MOST_LINES: Final = 10
"""So many differences of one piece are logged one by one."""

_PAUSES: Final = Backoff(2.0, 300.0)
_PAUSE_AT_THE_END: Final = 60.0
"""Seconds until the next check for blocks that are left to prove."""
_PAUSE_WITHOUT_GAIN: Final = 3600.0
"""After a piece that gained nothing: each costs the operator requests."""


@dataclass(slots=True)
class _Work:
    """A run that is being proved."""

    run: ProvenanceRun
    proof: RunProof
    position: IndexedBlock
    """The last block that was read."""
    differences: int = 0


class BackgroundProver:
    """Proves blocks when nothing else is to do at the head. ``differences`` counts differences.

    The prover passes once through the blocks, in rising order; a restart of the process begins
    again.
    """

    def __init__(
        self,
        store: Store,
        settings: IndexerSettings,
        others: OtherEndpoints,
        report: Callable[[Endpoint, ChainError], None] = lambda endpoint, error: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prove in the node's own database; ``report`` gets errors of endpoints for their pool."""
        # One endpoint's word is what the blocks have already.
        settings = replace(settings, page_blocks=PIECE_BLOCKS, trusts_one_endpoint=False)
        prover = PageProver(settings, others, clock)
        self.differences = 0
        self._reader = PageReader(settings, NoKey(), recent_blocks=0, prover=prover)
        self._store = store
        self._deployment = settings.deployment
        failure = "stored blocks are not proved"
        report = partial(_report, report)
        self._task = BackgroundTask("stored_blocks_unproved", failure, _PAUSES, report, clock)
        self._work: _Work | None = None
        self._first = 0

    def prove(self, endpoint: Endpoint, final_block: int) -> None:
        """Prove the next piece of the stored blocks up to the final one. Most calls do nothing.

        An error is logged, once: no envelope depends on this.
        """
        self._task.do(endpoint, lambda: self._prove_piece(endpoint, final_block))

    def _prove_piece(self, endpoint: Endpoint, final_block: int) -> float:
        """Return how many seconds to wait before the next piece."""
        # A piece that fails begins again at what is stored as not proved.
        work, self._work = self._work, None
        try:
            work = work or self._next_work(endpoint, final_block)
            if work is None:
                return _PAUSE_AT_THE_END
            last = next_stored_block(self._store, work.run.last_block)
            pending = page_after_block(self._reader, work.position, last, endpoint)
        except Unconfirmed:
            # The endpoint offers no proof, which is no fault: the operator may trust this endpoint.
            return _PAUSE_WITHOUT_GAIN
        found = work.proof.take(pending)
        work.position = pending.page.last
        self._tell(work, found.differences)
        is_gain = pending.page.provenance.is_stronger_than(work.run.provenance)
        if is_gain and work.position.header.number < work.run.last_block:
            self._work = work
            return 0.0
        self._first = work.run.last_block + 1
        if not is_gain:
            return _PAUSE_WITHOUT_GAIN
        if not work.differences:
            first, last = work.run.first_block, work.run.last_block
            text = f"stored blocks {first} to {last} were compared with the chain and are proved"
            log_event(LogEvent("stored_blocks_proved", text, {"from": first, "to": last}))
        return 0.0

    def _tell(self, work: _Work, differences: Sequence[Difference]) -> None:
        for difference in differences[:_MOST_LINES]:
            text = f"stored row differs from the chain: {difference}"
            log_event(LogEvent("stored_row_differs", text, level=logging.ERROR))
        work.differences += len(differences)
        self.differences += len(differences)

    def _next_work(self, endpoint: Endpoint, final_block: int) -> _Work | None:
        for run in unproved_runs(self._store):
            first, last = max(run.first_block, self._first), min(run.last_block, final_block)
            if first <= last:
                rest = ProvenanceRun(first, last, run.provenance)
                position = block_before(self._store, self._deployment, first, endpoint)
                return _Work(rest, RunProof(self._store, rest), position)
        return None


def _report(
    report: Callable[[Endpoint, ChainError], None], endpoint: Endpoint, error: ChainError
) -> None:
    """Report an error that disqualifies an endpoint: it may only have forgotten old blocks."""
    if isinstance(error, Disproved | RateLimited):
        report(endpoint, error)
