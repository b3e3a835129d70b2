"""Proves blocks that were stored on one endpoint's word, or two's: no envelope is signed again.

It reads the blocks as ``verify`` does, but takes only what is established in a stronger way. A page
without a difference is written down at once, so the work goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, IndexerSettings
from chainkit_indexer.storage.identity import Identity, check_identity
from chainkit_indexer.storage.provenance import raise_run, read_runs
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Provenance, ProvenanceRun
from chainkit_indexer.verification.page_comparison import page_differences
from chainkit_indexer.verification.verify import Observer, stored_pages


@dataclass(frozen=True, slots=True)
class Proved:
    """What became of the blocks that were not proved."""

    receipts: int
    """Blocks that are proved by receipts now."""
    second_endpoint: int
    """Blocks that a second endpoint confirmed."""
    differences: int
    """In pages that stay as they were."""


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
        for pending in stored_pages(pool, store, settings, (run.first_block, run.last_block)):
            page, rows = pending.page, pending.rows()
            first, last = page.blocks[0].header.number, page.last.header.number
            with store.writing() as connection:
                found = list(page_differences(connection, page, rows, key))
                if not found:
                    raise_run(connection, ProvenanceRun(first, last, page.provenance))
            for difference in found:
                observer.differs(difference)
            differences += len(found)
            counts[page.provenance] += 0 if found else len(page.blocks)
            observer.compared(len(page.blocks))
    return Proved(counts[Provenance.RECEIPTS], counts[Provenance.SECOND_ENDPOINT], differences)
