"""Bins of blocks, in which the coverage is counted and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_BINS: Final = 96
"""More would be narrower than a line of the picture."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The blocks of a chain export, both ends included, in bins that begin at multiples of a step.

    The step is a power of two, so that narrower bins can be summed as a chain grows.
    """

    first_block: int
    last_block: int
    step: int

    @classmethod
    def over(cls, first_block: int, last_block: int) -> Bins:
        """Divide a range of blocks into MOST_BINS or fewer bins of one length."""
        step = 1
        while last_block // step - first_block // step >= MOST_BINS:
            step *= 2
        return cls(first_block, last_block, step)

    def begin(self, block: int) -> int:
        """Return the first block of the bin that a block lies in."""
        return block - block % self.step
