"""Takes everything above a block back into the journal, as a reorg does, for the operator.

The next run reads these blocks again: payloads that are still on the chain become kept or moved,
the others stay dropped. Down to the final block the known blocks give the earlier cursor. Below the
final block, the stored rows and the chain together give the cursor. The newest payload that stays
must be in the same block on the chain, because all blocks of a branch must be taken back together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from chainkit.chain import Endpoint
from chainkit.errors import ConfigurationError, StoreError, WrongChain
from chainkit.types import BlockReference
from chainkit_indexer.storage.block_ranges import (
    PAYLOAD_TABLES,
    cuts_above,
    sequence_ids_up_to,
)
from chainkit_indexer.storage.blocks import read_block, read_final_block, read_position
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import IndexedBlock


@dataclass(frozen=True, slots=True)
class Rewind:
    """The outcome of a rewind, planned or done."""

    position: IndexedBlock
    """Where the cursor is."""
    target: IndexedBlock
    """The cursor after the rewind."""
    to_block: int
    """The requested block: the target is this block, or one below."""
    final_block: int
    """The final block before; -1 where there was none."""
    envelopes: int
    """So many go to the journal, as do the quarantined payloads."""
    quarantined: int
    below_final: bool
    """Whether the operator allows to take back final blocks."""

    @property
    def reason(self) -> str | None:
        """Why the target is below the requested block; None where it is not."""
        if (first := self.target.header.number + 1) > self.to_block:
            return None
        blocks = f"blocks {first} to {self.to_block}" if first < self.to_block else f"block {first}"
        return f"nothing is stored of {blocks}, where the chain may hold payloads"

    @property
    def depth(self) -> int:
        """Blocks that are taken back."""
        return self.position.header.number - self.target.header.number


def plan_rewind(
    store: Store, to_block: int, below_final: bool = False, endpoint: Endpoint | None = None
) -> Rewind:
    """Return the effect of a rewind to a block. Nothing is written.

    Raises StoreError for a block that is not below the cursor, that lies below the contracts, or
    below the final block unless ``below_final``. Then an ``endpoint`` is needed, and StoreError
    names the highest block up to which the stored payloads are those of the endpoint's chain.
    """
    with store.reading() as connection:
        position, final_block = read_position(connection), read_final_block(connection)
        if position is None:
            raise StoreError(f"database {store.name}", "an indexed block", "none yet")
        _check_bounds(store, to_block, position, final_block, below_final)
        target = read_block(connection, to_block)
        target = target or _target_on_chain(store, connection, endpoint, to_block)
        sparse = store.identity.sparse_originator_ids
        cuts = cuts_above(target.sequence_ids, target.header.number, sparse)
        envelopes, quarantined = (
            sum(
                connection.scalar(select(func.count()).where(cut.above(table.c))) or 0
                for cut in cuts
            )
            for table in PAYLOAD_TABLES
        )
    return Rewind(position, target, to_block, final_block, envelopes, quarantined, below_final)


def rewind(store: Store, plan: Rewind) -> int:
    """Carry out a plan, in one transaction; return the id of the reorg in the journal.

    Raises StoreError, and changes nothing, if the cursor moved meanwhile, or if the plan would take
    back final blocks without permission: then the known blocks are wrong.
    """
    reorg_id, _ = store.retract(plan.position, plan.target, plan.below_final, plan.to_block)
    return reorg_id


def _check_bounds(
    store: Store, to_block: int, position: IndexedBlock, final_block: int, below_final: bool
) -> None:
    subject = f"database {store.name}"
    lowest, highest = max(store.identity.first_block - 1, 0), position.header.number - 1
    if highest < lowest or to_block == position.header.number:
        place = f"nothing above block {position.header.number} is stored"
        raise StoreError(subject, "blocks to take back", "none", place)
    if not lowest <= to_block <= highest:
        raise StoreError(subject, f"a block from {lowest} to {highest}, below the cursor", to_block)
    if to_block < final_block and not below_final:
        place = "what was called final would change: only --below-final does that"
        raise StoreError(subject, f"a block from the final block {final_block} on", to_block, place)


def _target_on_chain(
    store: Store, connection: Connection, endpoint: Endpoint | None, to_block: int
) -> IndexedBlock:
    if endpoint is None:
        got, place = f"none for block {to_block}", "the database forgets blocks that are final"
        raise ConfigurationError("rewind below the final block", "--rpc URL", got, place)
    identity = store.identity
    if (genesis := endpoint.header(0).hash) != identity.genesis_hash:
        expected = f"0x{identity.genesis_hash.hex()}"
        raise WrongChain(f"block 0 at {endpoint.name}", expected, f"0x{genesis.hex()}")
    originators = sorted({contract.originator_id for contract in identity.contracts})
    if sparse := identity.sparse_originator_ids:
        # A bisection over sequence ids finds the shared block.
        expected, place = "counted sequence ids", "to change final blocks, index again"
        got = f"sparse ones of originator {', '.join(map(str, sorted(sparse)))}"
        raise StoreError(f"rewind of {store.name} below the final block", expected, got, place)
    sequence_ids = sequence_ids_up_to(connection, originators, to_block, sparse)
    shared = _highest_shared_block(connection, endpoint, sequence_ids, to_block)
    if shared < to_block:
        expected = f"a block up to {shared}"
        place = f"stored payloads above it lie in other blocks than at {endpoint.name}"
        raise StoreError(f"database {store.name}", expected, to_block, place)
    # Between the last stored payload and ``to_block``, this chain may hold other payloads.
    last = max(
        (_block_of(connection, *each).number for each in sequence_ids.items() if each[1]),
        default=max(identity.first_block - 1, 0),
    )
    return IndexedBlock(endpoint.header(last), sequence_ids)


def _highest_shared_block(
    connection: Connection, endpoint: Endpoint, sequence_ids: Mapping[int, int], to_block: int
) -> int:
    """Return the highest block up to which all stored payloads lie in blocks of the chain.

    Blocks link, so up to a shared one all are: the last payload decides, or else a bisection.
    """
    shared = to_block
    for originator_id, last in sequence_ids.items():
        low, high = 0, last + 1
        if last and _is_on_chain(connection, endpoint, originator_id, last):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _is_on_chain(connection, endpoint, originator_id, middle):
                low = middle
            else:
                high = middle
        if high <= last:
            shared = min(shared, _block_of(connection, originator_id, high).number - 1)
    return shared


def _is_on_chain(
    connection: Connection, endpoint: Endpoint, originator_id: int, sequence_id: int
) -> bool:
    block = _block_of(connection, originator_id, sequence_id)
    found = endpoint.find_header(block.number)
    return found is not None and found.hash == block.hash


def _block_of(connection: Connection, originator_id: int, sequence_id: int) -> BlockReference:
    for table in PAYLOAD_TABLES:
        query = select(table.c.block_number, table.c.block_hash).where(
            table.c.originator_id == originator_id, table.c.sequence_id == sequence_id
        )
        if (row := connection.execute(query).one_or_none()) is not None:
            return BlockReference(*row)
    subject = f"envelope {sequence_id} of originator {originator_id}"
    raise StoreError(subject, "one", "none", "`chainkit index verify` tells what else is missing")
