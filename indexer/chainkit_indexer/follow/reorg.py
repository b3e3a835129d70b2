"""Finds where the chain forked off from what was followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chainkit.chain import Endpoint
from chainkit.errors import InconsistentAnswer, ReorgTooDeep
from chainkit_indexer.follow.fetch import linked_headers
from chainkit_indexer.types import IndexedBlock

_USUAL_DEPTH: Final = 8
"""Almost every reorg is shallower; only a deeper one reads the whole window."""


def find_ancestor(endpoint: Endpoint, known: Sequence[IndexedBlock], database: str) -> IndexedBlock:
    """Return the highest known block that is still on the chain, below the highest known one.

    ``known`` are consecutive blocks in rising order, the lowest of them final, of which the chain
    was seen to contradict the last. Raises ReorgTooDeep where it contradicts all of them, and
    InconsistentAnswer where it now contradicts none: then the endpoint has mixed two replicas.
    """
    for count in (_USUAL_DEPTH, len(known)):
        ancestor = _highest_common(endpoint, known[-count:])
        if ancestor is known[-1]:
            subject = f"block {ancestor.header.number} at {endpoint.name}"
            raise InconsistentAnswer(subject, "the same block twice", "another one")
        if ancestor is not None:
            return ancestor
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


def _highest_common(endpoint: Endpoint, known: Sequence[IndexedBlock]) -> IndexedBlock | None:
    headers = linked_headers(endpoint, known[0].header.number, known[-1].header.number)
    for block, header in zip(reversed(known), reversed(headers), strict=True):
        if block.header.hash == header.hash:
            return block
    return None
