"""Follows the node registry (XIP-49 §3.1.1), on the chain of the payloads or on another one.

A registry changes a few times a year, so its history is read differently from the payloads'. Near
the head every header is read and linked, because the chain may still fork, and each block is asked
for its logs by hash. Deeper, logs come by range, and only three kinds of headers are read: that of
the cursor, which must be the stored one; that of the range's end; and those of blocks with logs,
whose hashes the logs must contain. That is enough because completeness does not depend on the logs:
the folded history must equal the registry's own listing, node for node, read by hash at the range's
end and before each block that changed it. An update that an endpoint hides shows as a difference
there, unless another hidden update undid it at once. A difference is an InconsistentAnswer, and
nothing of the range is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from chainkit.chain import Endpoint
from chainkit.contracts.followed import FollowedRegistry
from chainkit.contracts.registry import Registry
from chainkit.errors import (
    AccessRefused,
    InconsistentAnswer,
    RefusedRequest,
    ReorgTooDeep,
    StateUnavailable,
)
from chainkit.types import BlockHeader, BlockReference, Node
from chainkit_indexer.follow.reorg import highest_common
from chainkit_indexer.registry.fetch import RegistryRange, RegistryReader
from chainkit_indexer.registry.history import RegistryHistory, fold_updates
from chainkit_indexer.storage.store import Store

WINDOW_BLOCKS: Final = 256
"""Depth of the deepest reorg that can be repaired: so many blocks are kept to compare."""


@dataclass(frozen=True, slots=True)
class RegistryAdvanced:
    """A range of blocks was read."""

    from_block: int
    cursor: BlockReference
    """Last block of the range."""
    head: BlockHeader
    updates: int
    is_committed: bool
    """False where the endpoint has no state to prove the range with: the range is kept in memory,
    and committed with the next range that can be proved."""


@dataclass(frozen=True, slots=True)
class RegistryIdle:
    """There is nothing to do: nothing was written."""

    cursor: BlockReference
    head: BlockHeader


@dataclass(frozen=True, slots=True)
class RegistryRolledBack:
    """A reorg took blocks back; the next steps read the new branch."""

    depth: int
    """Blocks taken back."""
    cursor: BlockReference
    """The common ancestor."""
    head: BlockHeader
    retracted: int
    """Updates deleted."""


RegistryStepResult = RegistryAdvanced | RegistryIdle | RegistryRolledBack


class RegistryFollower:
    """One registry's history in one database, a step at a time."""

    def __init__(
        self, store: Store, registry: FollowedRegistry, window_blocks: int = WINDOW_BLOCKS
    ) -> None:
        """Raise StoreError where the database holds another registry's history."""
        self._history = RegistryHistory(store, registry)
        self._registry = registry
        self._window_blocks = window_blocks
        self._reader = RegistryReader(registry, window_blocks)
        self._unproved: RegistryRange | None = None

    def step(self, endpoint: Endpoint) -> RegistryStepResult:
        """Read one range of blocks, or take one reorg back, or find that there is nothing to do.

        All writes are one transaction, so a step may be killed anywhere and called again. Raises
        RetryableChainError where the endpoint gave no answer or a wrong one, WrongChain where the
        endpoint serves another chain, and ReorgTooDeep or StoreError where a person has to decide;
        nothing was changed then.
        """
        try:
            return self._step(endpoint)
        except InconsistentAnswer:
            # The part that was not proved so far may be wrong.
            self._unproved = None
            raise

    def _step(self, endpoint: Endpoint) -> RegistryStepResult:
        head = endpoint.head_of(self._registry.chain_id)
        start = self._unproved.last if self._unproved else self._position(endpoint)
        if head.number <= start.number:
            if self._is_contradicted_by(head, start):
                return self._roll_back(endpoint, start, head)
            return RegistryIdle(start.reference, head)
        found = self._reader.read(endpoint, start, head)
        if found is None:
            return self._roll_back(endpoint, start, head)
        return self._keep(endpoint, found, head)

    def _position(self, endpoint: Endpoint) -> BlockHeader:
        stored = self._history.position()
        return stored or endpoint.header(max(self._registry.block - 1, 0))

    def _is_contradicted_by(self, head: BlockHeader, start: BlockHeader) -> bool:
        # A head below the cursor is a lagging replica as long as the head's block is known here.
        known = (start, *self._history.blocks(head.number))
        return any(block.number == head.number and block.hash != head.hash for block in known)

    # ------------------------------------------------------------------ proving

    def _keep(
        self, endpoint: Endpoint, found: RegistryRange, head: BlockHeader
    ) -> RegistryAdvanced:
        is_proved = self._is_proved(endpoint, found)
        if not is_proved and found.last.number == head.number:
            # At the head, every endpoint that has the block has its state.
            subject = f"state of block {head.reference} at {endpoint.name}"
            raise InconsistentAnswer(subject, "the registry's listing", "none")
        earlier = self._unproved
        whole = found if earlier is None else earlier.followed_by(found)
        if is_proved:
            self._commit(whole)
        self._unproved = None if is_proved else whole
        return RegistryAdvanced(
            from_block=found.start.number + 1,
            cursor=found.last.reference,
            head=head,
            updates=len(found.updates),
            is_committed=is_proved,
        )

    def _is_proved(self, endpoint: Endpoint, found: RegistryRange) -> bool:
        """Return whether the history equals the listing at the range's end, if a listing is there.

        Raises InconsistentAnswer where the two differ, there or before a block that changed the
        history.
        """
        earlier = self._unproved.updates if self._unproved else ()
        nodes = fold_updates(self._history.nodes(), (update.node for update in earlier))
        parents = {block.number: block.parent_hash for block in found.blocks}
        for number, updates in groupby(found.updates, lambda update: update.block.number):
            if number > self._registry.block:
                self._is_listing(endpoint, BlockReference(number - 1, parents[number]), nodes)
            nodes = fold_updates(nodes, (update.node for update in updates))
        return self._is_listing(endpoint, found.last.reference, nodes)

    def _is_listing(self, endpoint: Endpoint, block: BlockReference, nodes: Sequence[Node]) -> bool:
        """Return whether the registry lists these nodes; False where there is no state to ask."""
        try:
            listed = Registry(endpoint, self._registry.address).nodes(block)
        except AccessRefused:
            raise
        except (RefusedRequest, StateUnavailable):
            return False
        if listed != nodes:
            raise InconsistentAnswer(
                f"NodeUpdated logs at {endpoint.name}",
                f"the registry's own listing, {_differences(nodes, listed)}",
                "another history",
                f"block {block}",
            )
        return True

    def _commit(self, whole: RegistryRange) -> None:
        blocks = whole.blocks
        if self._history.position() is None:
            blocks = (whole.start, *blocks)
        self._history.append(blocks, whole.updates, whole.last.number - self._window_blocks)

    # ------------------------------------------------------------------ reorgs

    def _roll_back(
        self, endpoint: Endpoint, start: BlockHeader, head: BlockHeader
    ) -> RegistryRolledBack:
        known = self._history.blocks(min(start.number, head.number))
        if self._unproved or not known:
            subject = f"block {start.number} at {endpoint.name}"
            raise InconsistentAnswer(subject, f"0x{start.hash.hex()}", "another hash")
        ancestor = _find_ancestor(endpoint, known)
        return RegistryRolledBack(
            depth=start.number - ancestor.number,
            cursor=ancestor.reference,
            head=head,
            retracted=self._history.retract(ancestor),
        )


def _differences(nodes: Sequence[Node], listed: Sequence[Node]) -> str:
    """Name the nodes that differ in the listing; strings of strangers are not shown."""
    folded: Mapping[int, Node] = {node.node_id: node for node in nodes}
    named = {node.node_id: node for node in listed}
    ids = [
        str(number)
        for number in sorted({*folded, *named})
        if folded.get(number) != named.get(number)
    ]
    return f"which differs in node {', '.join(ids)}"


def _find_ancestor(endpoint: Endpoint, known: Sequence[BlockHeader]) -> BlockHeader:
    """Return the highest known block that is still on the chain, of those in rising order.

    Raises ReorgTooDeep where none is, and InconsistentAnswer where all are: then the endpoint
    has mixed two replicas.
    """

    def read(part: Sequence[BlockHeader]) -> Sequence[BlockHeader | None]:
        return endpoint.headers([block.number for block in part])

    if (common := highest_common(endpoint, known, read)) is not None:
        return common
    raise ReorgTooDeep(
        f"registry's chain at {endpoint.name}",
        f"block {known[0].reference}, the oldest one known",
        "another block",
    )
