"""Proves blocks that one or two endpoints' answers established: no envelope is signed again.

Blocks are read as in ``verify``, but only pages that are established in a stronger way count.
Blocks are linked by hash, so those up to a block whose hash is stored are the blocks that were
followed: this progress is stored at once, and an interrupted run continues from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from sqlalchemy import Connection, func, select

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, IndexerSettings
from chainkit_indexer.follow.build import PendingPage
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import PAYLOAD_TABLES, rows_within
from chainkit_indexer.storage.identity import Identity, check_identity
from chainkit_indexer.storage.provenance import raise_run, read_runs
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Provenance, ProvenanceRun, VerifiedPage
from chainkit_indexer.verification.page_comparison import Difference, page_differences
from chainkit_indexer.verification.verify import Observer, stored_pages


@dataclass(frozen=True, slots=True)
class Proved:
    """Counts of the blocks that were not proved before."""

    receipts: int
    """Blocks that are proved by receipts now."""
    second_endpoint: int
    """Blocks that a second endpoint confirmed."""
    differences: int
    """In pages that stayed unchanged."""


@dataclass(frozen=True, slots=True)
class PageProof:
    """The result of comparing one page with the stored rows."""

    raised: ProvenanceRun | None
    """The blocks that are established in this way now; None where none could be yet."""
    differences: tuple[Difference, ...]
    """Where there are any, the page stays unchanged."""


class RunProof:
    """Takes the pages of a run of stored blocks, in rising order, and stores what the pages prove.

    A block whose hash is not stored is proved by a later block whose hash is.
    """

    def __init__(self, store: Store, run: ProvenanceRun) -> None:
        """Begin at the run's first block."""
        self._store = store
        self._run = run
        self._first = run.first_block
        self._weakest = Provenance.RECEIPTS

    def take(self, pending: PendingPage) -> PageProof:
        """Compare a page with its stored rows; raise the blocks up to the last stored hash."""
        page, rows = pending.page, pending.rows()
        if self._weakest.is_stronger_than(page.provenance):
            self._weakest = page.provenance
        last = page.last.header.number
        raised = None
        with self._store.writing() as connection:
            found = tuple(page_differences(connection, page, rows, self._store.identity))
            stored = min(_last_stored_block(connection, page), self._run.last_block)
            if not found and stored >= self._first:
                raised = ProvenanceRun(self._first, stored, self._weakest)
                raise_run(connection, raised)
        if raised is not None:
            self._first = stored + 1
            self._weakest = Provenance.RECEIPTS if stored == last else page.provenance
        if found:
            # This page stays unchanged; later pages may be proved.
            self._first, self._weakest = last + 1, Provenance.RECEIPTS
        return PageProof(raised, found)


def unproved_runs(store: Store) -> tuple[ProvenanceRun, ...]:
    """Return the runs of blocks that no receipts prove."""
    with store.reading() as connection:
        runs = read_runs(connection)
    return tuple(run for run in runs if run.provenance is not Provenance.RECEIPTS)


def prove_runs(
    pool: EndpointPool,
    store: Store,
    deployment: FollowedDeployment,
    runs: Sequence[ProvenanceRun],
    observer: Observer,
    page_blocks: int = DEFAULT_PAGE_BLOCKS,
) -> Proved:
    """Prove runs of stored blocks. Raises as ``verify_range``, and Unconfirmed if nothing proves.

    A second endpoint is enough for what rests on one endpoint's word.
    """
    key = store.identity.node_public_key
    check_identity(store.name, Identity.of(deployment, key), store.identity)
    settings = IndexerSettings(deployment, page_blocks)
    counts = dict.fromkeys(Provenance, 0)
    differences = 0
    for run in runs:
        proof = RunProof(store, run)
        end = next_stored_block(store, run.last_block)
        for pending in stored_pages(pool, store, settings, (run.first_block, end)):
            found = proof.take(pending)
            if found.raised is not None:
                counts[found.raised.provenance] += found.raised.blocks
            for difference in found.differences:
                observer.differs(difference)
            differences += len(found.differences)
            blocks = pending.page.blocks
            observer.compared(sum(block.header.number <= run.last_block for block in blocks))
    return Proved(counts[Provenance.RECEIPTS], counts[Provenance.SECOND_ENDPOINT], differences)


def next_stored_block(store: Store, number: int) -> int:
    """Return the lowest block from a height on whose hash is stored; the cursor's always is."""
    known = select(func.min(schema.blocks.c.number)).where(schema.blocks.c.number >= number)
    originators = {contract.originator_id for contract in store.identity.contracts}
    sparse = store.identity.sparse_originator_ids
    with store.reading() as connection:
        found: list[int | None] = [connection.scalar(known)]
        for table, originator_id in product(PAYLOAD_TABLES, originators):
            rows = rows_within(connection, table, table.c, originator_id, (number, None), sparse)
            order = table.c.block_number if originator_id in sparse else table.c.sequence_id
            if rows is not None:
                lowest = select(table.c.block_number).where(rows).order_by(order).limit(1)
                found.append(connection.scalar(lowest))
    return min(block for block in found if block is not None)


def _last_stored_block(connection: Connection, page: VerifiedPage) -> int:
    """Return the highest block of a page whose hash is stored; -1 where none is.

    The page's payloads are those that are stored.
    """
    first, last = page.blocks[0].header.number, page.last.header.number
    number = schema.blocks.c.number
    known = connection.scalar(select(func.max(number)).where(number.between(first, last)))
    payload = page.events[-1].log.block_number if page.events else -1
    return max(-1 if known is None else known, payload)
