"""Proves blocks that were stored on one endpoint's word, or two's: no envelope is signed again.

It reads the blocks as ``verify`` does, but takes only what is established in a stronger way. Blocks
are linked by hash, so those up to one whose hash is stored are the blocks that were followed: so
far is written down at once, and the work goes on there where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from sqlalchemy import Connection, func, select

from chainkit.chain import EndpointPool
from chainkit.contracts.followed import FollowedDeployment
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, IndexerSettings
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.identity import Identity, check_identity
from chainkit_indexer.storage.provenance import raise_run, read_runs
from chainkit_indexer.storage.store import PAYLOAD_TABLES, Store, first_sequence_id_from
from chainkit_indexer.types import Provenance, ProvenanceRun, VerifiedPage
from chainkit_indexer.verification.page_comparison import page_differences
from chainkit_indexer.verification.verify import Observer, stored_pages

_STRENGTH: Final = tuple(Provenance)
"""The strongest first."""


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
        first, weakest = run.first_block, Provenance.RECEIPTS
        end = _next_stored_block(store, run.last_block)
        for pending in stored_pages(pool, store, settings, (run.first_block, end)):
            page, rows = pending.page, pending.rows()
            weakest = max(weakest, page.provenance, key=_STRENGTH.index)
            with store.writing() as connection:
                found = list(page_differences(connection, page, rows, key))
                stored = min(_last_stored_block(connection, page), run.last_block)
                if not found and stored >= first:
                    raise_run(connection, ProvenanceRun(first, stored, weakest))
                    counts[weakest] += stored - first + 1
                    is_whole = stored == page.last.header.number
                    first = stored + 1
                    weakest = Provenance.RECEIPTS if is_whole else page.provenance
            if found:
                # What comes after may hold, but this page stays as it was.
                first, weakest = page.last.header.number + 1, Provenance.RECEIPTS
            for difference in found:
                observer.differs(difference)
            differences += len(found)
            observer.compared(sum(block.header.number <= run.last_block for block in page.blocks))
    return Proved(counts[Provenance.RECEIPTS], counts[Provenance.SECOND_ENDPOINT], differences)


def _next_stored_block(store: Store, number: int) -> int:
    """Return the lowest block from a height on whose hash is stored; the cursor's always is."""
    known = select(func.min(schema.blocks.c.number)).where(schema.blocks.c.number >= number)
    originators = {contract.originator_id for contract in store.identity.contracts}
    with store.reading() as connection:
        found: list[int | None] = [connection.scalar(known)]
        for table, originator_id in product(PAYLOAD_TABLES, originators):
            first = first_sequence_id_from(connection, table, originator_id, number)
            payload = select(table.c.block_number).where(
                table.c.originator_id == originator_id, table.c.sequence_id == first
            )
            found.append(None if first is None else connection.scalar(payload))
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
