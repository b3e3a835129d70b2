"""Checks a stored range against the chain again: nothing is written, no private key is needed.

Every page is fetched as the indexer fetches it, every unsigned envelope built again. Only the
signature cannot be built: it must recover to the node's key, and the stored bytes must be exactly
those of the built envelope with this signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from chainkit.chain import Endpoint, EndpointPool
from chainkit.contracts.counter import read_counter
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import InconsistentAnswer, StoreError
from chainkit_indexer.config import DEFAULT_PAGE_BLOCKS, IndexerSettings
from chainkit_indexer.follow.build import PendingPage
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.provenance import PageProver
from chainkit_indexer.follow.signing import NoKey
from chainkit_indexer.storage.block_ranges import sequence_ids_up_to
from chainkit_indexer.storage.blocks import read_final_block, read_position
from chainkit_indexer.storage.identity import Identity, check_identity
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import IndexedBlock
from chainkit_indexer.verification.page_comparison import (
    Difference,
    end_differences,
    page_differences,
)

_PATIENCE_SECONDS: Final = 60.0
"""How long a page may take until its endpoints are given up."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The counts of a comparison."""

    from_block: int
    to_block: int
    envelopes: int
    """Payloads of the chain that a node serves."""
    quarantined: int
    """Payloads of the chain that the node must not serve."""
    differences: int


class Observer(Protocol):
    """Takes the differences, and how far the comparison is."""

    def differs(self, difference: Difference) -> None:
        """Take note of a difference."""

    def compared(self, blocks: int) -> None:
        """Take note that so many more blocks were compared."""


def stored_range(store: Store, first: int | None, last: int | None) -> tuple[int, int]:
    """Return the blocks to verify: as asked, or from the first to the final block.

    While nothing is final, to the cursor. Raises StoreError for blocks that were not indexed.
    """
    with store.reading() as connection:
        position, final_block = read_position(connection), read_final_block(connection)
    lowest = store.identity.first_block
    if position is None or position.header.number < lowest:
        raise StoreError(f"database {store.name}", "an indexed block", "none yet")
    highest = position.header.number
    if first is None:
        first = lowest
    if last is None:
        last = final_block if final_block >= first else highest
    if not lowest <= first <= last <= highest:
        expected = f"a range within the indexed blocks {lowest} to {highest}"
        raise StoreError(f"database {store.name}", expected, f"{first} to {last}")
    return first, last


def verify_range(
    pool: EndpointPool,
    store: Store,
    deployment: FollowedDeployment,
    blocks: tuple[int, int],
    observer: Observer,
    page_blocks: int = DEFAULT_PAGE_BLOCKS,
) -> Verified:
    """Compare the stored rows of some blocks, both ends included, with the chain.

    Raises StoreError where the database is another deployment's, ChainError where no endpoint
    gives an answer that holds even after some time.
    """
    key = store.identity.node_public_key
    check_identity(store.name, Identity.of(deployment, key), store.identity)
    # Nothing is signed here: what cannot be proved is still worth comparing.
    settings = IndexerSettings(deployment, page_blocks, trusts_one_endpoint=True)
    envelopes = quarantined = differences = 0
    for pending in stored_pages(pool, store, settings, blocks):
        page, rows = pending.page, pending.rows()
        envelopes += len(rows.envelopes)
        quarantined += len(rows.quarantine)
        with store.reading() as connection:
            found = list(page_differences(connection, page, rows, store.identity))
            if page.last.header.number == blocks[1]:
                found += end_differences(connection, page.last, deployment.sparse_originator_ids)
        for difference in found:
            observer.differs(difference)
        differences += len(found)
        observer.compared(len(page.blocks))
    return Verified(*blocks, envelopes, quarantined, differences)


def stored_pages(
    pool: EndpointPool, store: Store, settings: IndexerSettings, blocks: tuple[int, int]
) -> Iterator[PendingPage]:
    """Read stored blocks from the chain again, both ends included, and build their rows.

    Raises the last error where no endpoint gives a correct page, even after some time.
    """
    first, last = blocks
    prover = PageProver(settings, pool.others)
    reader = PageReader(settings, NoKey(), prefetches=True, recent_blocks=0, prover=prover)
    before = partial(block_before, store, settings.deployment, first)
    start = pool.first_answer(before, _PATIENCE_SECONDS)
    while start.header.number < last:
        page_after = partial(page_after_block, reader, start, last)
        pending = pool.first_answer(page_after, _PATIENCE_SECONDS)
        yield pending
        start = pending.page.last


def page_after_block(
    reader: PageReader, start: IndexedBlock, last: int, endpoint: Endpoint
) -> PendingPage:
    """Read the next stored blocks, up to ``last``. Raises InconsistentAnswer after a reorg."""
    pending = reader.read(endpoint, start, endpoint.head(), last)
    if pending is None:
        subject = f"block {start.header.number} at {endpoint.name}"
        raise InconsistentAnswer(subject, "the same block twice", "another one")
    return pending


def block_before(
    store: Store, deployment: FollowedDeployment, first: int, endpoint: Endpoint
) -> IndexedBlock:
    """Return the block before ``first``, with the numbers of the counters at that block."""
    header = endpoint.header(max(first - 1, 0))
    if first <= deployment.first_block:
        return IndexedBlock(header, dict.fromkeys(deployment.originator_ids, 0))
    with store.reading() as connection:
        sequence_ids = sequence_ids_up_to(
            connection, deployment.originator_ids, first - 1, deployment.sparse_originator_ids
        )
    for originator_id, counter in deployment.counters.items():
        # Without a counter, the stored number counts: the next page must continue it without a gap.
        if counter and (counted := read_counter(endpoint, counter, header.reference)) is not None:
            sequence_ids[originator_id] = counted
    return IndexedBlock(header, sequence_ids)
