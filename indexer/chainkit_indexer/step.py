"""One step: look at the cursor and at the head, do one bounded piece of work, commit it."""

from __future__ import annotations

from chainkit.chain import Endpoint
from chainkit.deployment import DeploymentRecord
from chainkit.errors import InconsistentAnswer
from chainkit.signatures import SigningKey
from chainkit.types import BlockHeader
from chainkit_indexer.build import build_rows
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.fetch import fetch_page, linked_headers
from chainkit_indexer.reorg import find_ancestor
from chainkit_indexer.store import Store
from chainkit_indexer.types import (
    Advanced,
    Idle,
    IndexedBlock,
    RolledBack,
    StepResult,
    VerifiedPage,
)


def step(
    endpoint: Endpoint, store: Store, key: SigningKey, settings: IndexerSettings
) -> StepResult:
    """Follow the chain by one page, or take one reorg back, or find that there is nothing to do.

    All that it writes is one transaction, so it may be killed anywhere and called again. Raises
    RetryableChainError where the endpoint gave no answer or one that does not hold,
    FatalChainError (ReorgTooDeep among others) or StoreError where a person has to decide; in
    each case nothing was changed.

    A head below the cursor is a lagging replica as long as its block is one that we know, and
    the step is idle: nothing contradicts what is held. A chain that was shortened is therefore
    taken back only when a different block appears at a height that was followed.
    """
    head = endpoint.head()
    stored = store.position()
    position = stored or _before_first_block(endpoint, settings.record)
    if _is_nothing_new(store, position, head):
        return Idle(position.header.reference, head.reference)
    cursor = position.header.number
    if head.number < cursor:
        return _roll_back(endpoint, store, position, head)
    # The block at the cursor is read along with the page, which it must link to.
    headers = linked_headers(endpoint, cursor, min(head.number, cursor + settings.page_blocks))
    is_ours = headers[0].hash == position.header.hash
    if (is_ours and len(headers) == 1) or (not is_ours and stored is None):
        # Two reads of one height differ: they came from two replicas.
        subject = f"block {cursor} at {endpoint.name}"
        raise InconsistentAnswer(subject, "the same block twice", "another one")
    if not is_ours:
        return _roll_back(endpoint, store, position, head)
    page = fetch_page(endpoint, settings.record, position, headers[1:])
    return _commit(store, key, settings, page, head)


def _before_first_block(endpoint: Endpoint, record: DeploymentRecord) -> IndexedBlock:
    # Block 0 holds no log, so it can stand before a page also where the record begins with it.
    return IndexedBlock(endpoint.header(max(record.first_block - 1, 0)), 0)


def _is_nothing_new(store: Store, position: IndexedBlock, head: BlockHeader) -> bool:
    if head.number >= position.header.number:
        return head.hash == position.header.hash
    known = store.blocks(head.number)
    # Below the window nothing is known that the head could contradict.
    return not known or known[-1].header.hash == head.hash


def _commit(
    store: Store,
    key: SigningKey,
    settings: IndexerSettings,
    page: VerifiedPage,
    head: BlockHeader,
) -> Advanced:
    rows = build_rows(page, key)
    store.append(page, rows, settings.window_blocks)
    return Advanced(
        from_block=page.blocks[0].header.number,
        cursor=page.last.header.reference,
        head=head.reference,
        envelopes=len(rows.envelopes),
        quarantined=len(rows.quarantine),
    )


def _roll_back(
    endpoint: Endpoint, store: Store, position: IndexedBlock, head: BlockHeader
) -> RolledBack:
    top = min(position.header.number, head.number)
    ancestor = find_ancestor(endpoint, store.blocks(top))
    reorg_id, retracted = store.retract(position, ancestor)
    return RolledBack(
        reorg_id=reorg_id,
        depth=position.header.number - ancestor.header.number,
        cursor=ancestor.header.reference,
        retracted=retracted,
    )
