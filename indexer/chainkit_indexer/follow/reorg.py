"""Finds where the chain forked off from what was followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from chainkit.chain import Endpoint
from chainkit.errors import InconsistentAnswer, ReorgTooDeep
from chainkit.types import BlockHeader
from chainkit_indexer.follow.fetch import linked_headers
from chainkit_indexer.types import IndexedBlock

ReadHeaders = Callable[[Sequence[BlockHeader]], Sequence[BlockHeader | None]]

_USUAL_DEPTH: Final = 8
"""Almost every reorg is shallower; only a deeper one reads the whole window."""


def find_ancestor(endpoint: Endpoint, known: Sequence[IndexedBlock], database: str) -> IndexedBlock:
    """Return the highest known block that is still on the chain, below the highest known one.

    ``known`` are consecutive blocks in rising order, the lowest of them final, of which the chain
    was seen to contradict the last. Raises ReorgTooDeep where the chain contradicts all known
    blocks, and InconsistentAnswer where it now contradicts none: then the endpoint has mixed two
    replicas.
    """
    headers = [block.header for block in known]
    read = partial(_linked, endpoint)
    if (common := highest_common(endpoint, headers, read)) is not None:
        return next(block for block in known if block.header is common)
    final, highest = known[0].header.reference, known[-1].header.number
    now = endpoint.header(final.number).reference
    raise ReorgTooDeep(
        f"chain at {endpoint.name}",
        f"the final block {final}",
        f"block {now}",
        f"nothing was changed, blocks {final.number} to {highest} are kept; if this chain is "
        f"right, `chainkit index rewind --below-final --to-block {max(final.number - 1, 0)} "
        f"--rpc URL --database {database}` takes back what was final, or says how deep it must "
        "go; else give another --rpc",
    )


def highest_common(
    endpoint: Endpoint, known: Sequence[BlockHeader], read: ReadHeaders
) -> BlockHeader | None:
    """Return the highest known block that is still on the chain, None where none is.

    ``known`` are blocks in rising order, and ``read`` returns the chain's headers at the heights of
    some of them. Raises InconsistentAnswer where the last block is still on the chain: the caller
    saw otherwise, so the endpoint has mixed two replicas.
    """
    for count in (_USUAL_DEPTH, len(known)):
        part = known[-count:]
        for block, header in zip(reversed(part), reversed(read(part)), strict=True):
            if header is not None and header.hash == block.hash:
                if block is known[-1]:
                    subject = f"block {block.number} at {endpoint.name}"
                    raise InconsistentAnswer(subject, "the same block twice", "another one")
                return block
    return None


def _linked(endpoint: Endpoint, known: Sequence[BlockHeader]) -> Sequence[BlockHeader]:
    return linked_headers(endpoint, known[0].number, known[-1].number)
