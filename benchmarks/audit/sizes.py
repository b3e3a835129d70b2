"""How much a run measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.audit.exports.shape import PAYLOAD_BYTES, Shape

LINEAR_TIMES: Final = 10
"""How many times larger the exports are by which linearity is judged."""

_LINEAR_RANDOM_BYTES: Final = 32
"""Fifty million rows of random bytes would fill a disk."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows are payloads on the chain; each of three nodes serves nearly as many."""

    rows: int
    faults: int
    """Number of faults in the nodes' exports, each kind in turn."""
    proved_transactions: int
    """Transactions of the chain export that is proved from its last block's hash."""
    rows_per_block: int = 100
    rounds: int = 3
    """Rounds of reconciling without signatures, which takes seconds: a machine has its moods."""
    nodes: int = 3

    @property
    def shape(self) -> Shape:
        """The exports that everything but the proof is measured on."""
        return Shape(self.rows, self.nodes, self.rows_per_block, is_signed=True)

    @property
    def proved_shape(self) -> Shape:
        """The chain export that is proved."""
        return Shape(self.proved_transactions, self.nodes, self.rows_per_block)

    def linear_shapes(self) -> Iterator[Shape]:
        """Yield exports that compress, as many rows in all as the chain has else, and ten times.

        With five million payloads and three nodes, these have five and fifty million rows.
        """
        for times in (1, LINEAR_TIMES):
            yield Shape(
                times * self.rows // (self.nodes + 1),
                self.nodes,
                self.rows_per_block,
                random_bytes=_LINEAR_RANDOM_BYTES,
            )

    def figures(self) -> dict[str, Any]:
        """Return them as a report names them."""
        return asdict(self) | {"payload_bytes": PAYLOAD_BYTES}


USUAL: Final = Sizes(rows=5_000_000, faults=6_000, proved_transactions=20_000)
QUICK: Final = Sizes(rows=3_000, faults=190, proved_transactions=200, rows_per_block=20, rounds=1)
