"""One step: reads the cursor and the head, does one bounded piece of work, and commits it."""

from __future__ import annotations

from chainkit.chain import Endpoint
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import InconsistentAnswer, ReorgTooDeep
from chainkit.types import BlockHeader, BlockReference
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.build import PendingPage
from chainkit_indexer.follow.fetch import linked_headers
from chainkit_indexer.follow.page_reader import PageReader
from chainkit_indexer.follow.reorg import find_ancestor
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import (
    Advanced,
    Idle,
    IndexedBlock,
    RolledBack,
    StepResult,
)


def step(
    endpoint: Endpoint,
    store: Store,
    settings: IndexerSettings,
    reader: PageReader,
) -> StepResult:
    """Follow the chain by one page, or take one reorg back, or find that there is nothing to do.

    All writes are one transaction, so a step may be killed anywhere and called again. Raises
    RetryableChainError where the endpoint gave no answer or a wrong one, StoreUnavailable where the
    database gave none, FatalChainError (such as ReorgTooDeep) or StoreError where a person has to
    decide; in each case nothing was changed.

    A head below the cursor is a lagging replica as long as the head's block is stored here. Then
    the step is idle: nothing contradicts the stored blocks. A chain that was shortened is therefore
    taken back only when a different block appears at a height that was followed.
    """
    stored, known_final = store.cursor_state()
    head = reader.head(endpoint, stored)
    position = stored or _before_first_block(endpoint, settings.deployment)
    cursor = position.header.number
    if _is_nothing_new(store, position, head):
        return _idle(store, position, head)
    if stored is None and head.number <= cursor:
        raise _mixed(endpoint, head.number)
    if head.number <= cursor:
        return _roll_back(endpoint, store, position, head)
    top = head.number
    if settings.serves_final_only:
        top = _final_of_proved_head(endpoint, head, settings, known_final)
        if top <= cursor:
            return _idle(store, position, head)
    pending = reader.read(endpoint, position, head, top)
    if pending is not None:
        page, final = pending.page, top
        if not settings.serves_final_only:
            # Not by the head, which is not proved yet: the final block never decreases.
            hashes = {block.header.number: block.header.hash for block in page.blocks}
            final = settings.finality.final_block(
                endpoint,
                page.last.header,
                known_final,
                lambda number: hashes.get(number) or _known_hash(store, number),
            )
        return _commit(store, pending, head, final)
    if stored is None:
        raise _mixed(endpoint, cursor)
    return _roll_back(endpoint, store, position, head)


def _mixed(endpoint: Endpoint, number: int) -> InconsistentAnswer:
    # Two reads of one height differ: they came from two replicas.
    subject = f"block {number} at {endpoint.name}"
    return InconsistentAnswer(subject, "the same block twice", "another one")


def _known_hash(store: Store, number: int) -> bytes | None:
    known = store.block(number)
    return known.header.hash if known else None


def _before_first_block(endpoint: Endpoint, deployment: FollowedDeployment) -> IndexedBlock:
    # Block 0 contains no log, so it can precede a page even where the record begins with it.
    number = max(deployment.first_block - 1, 0)
    [header] = linked_headers(endpoint, number, number)
    return IndexedBlock(header, dict.fromkeys(deployment.originator_ids, 0))


def _final_of_proved_head(
    endpoint: Endpoint, head: BlockHeader, settings: IndexerSettings, known_final: int
) -> int:
    # A replica that names a height too high cannot show the block of that height.
    if endpoint.header(head.number).hash != head.hash:
        raise _mixed(endpoint, head.number)
    return settings.finality.final_block(endpoint, head, known_final)


def _is_nothing_new(store: Store, position: IndexedBlock, head: BlockHeader) -> bool:
    if head.number >= position.header.number:
        return head.hash == position.header.hash
    # Below the final block no block is stored that the head could contradict.
    return _known_hash(store, head.number) in (None, head.hash)


def _idle(store: Store, position: IndexedBlock, head: BlockHeader) -> Idle:
    # While nothing waits: is the database there, and unchanged? The next step begins with this
    # result, and saves the time when a new block has come.
    return Idle(position.header.reference, head, store.read_cursor_state().final_block)


def _commit(store: Store, pending: PendingPage, head: BlockHeader, final: int) -> Advanced:
    page = pending.page
    rows = store.append(page, pending.rows(), final)
    return Advanced(
        from_block=page.blocks[0].header.number,
        cursor=page.last.header.reference,
        head=head,
        final_block=final,
        envelopes=len(rows.envelopes),
        quarantined=len(rows.quarantine),
        sequence_ids=page.last.sequence_ids,
        established=page.provenance,
        left_out=len(page.events) - len(rows.envelopes) - len(rows.quarantine),
    )


def _roll_back(
    endpoint: Endpoint,
    store: Store,
    position: IndexedBlock,
    head: BlockHeader,
) -> RolledBack:
    known = store.blocks(min(position.header.number, head.number))
    try:
        ancestor = find_ancestor(endpoint, known, store.name)
    except ReorgTooDeep:
        oldest = known[0].header
        if store.final_block() >= oldest.number:
            raise
        # No stored block is final yet, so the work may begin anew.
        cursor = BlockReference(oldest.number - 1, oldest.parent_hash)
        reorg_id, retracted = store.retract_all(position)
    else:
        cursor = ancestor.header.reference
        reorg_id, retracted = store.retract(position, ancestor)
    return RolledBack(
        reorg_id=reorg_id,
        depth=position.header.number - cursor.number,
        cursor=cursor,
        head=head,
        final_block=store.final_block(),
        retracted=retracted,
    )
