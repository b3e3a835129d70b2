"""Faults of files that another tool wrote: named, counted, never absorbed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

FAULT_TYPE: Final = "struct<code:string,expected:string,got:string>"
"""Type of the column ``fault`` of a source's rows: null where the row is fine."""


class FaultCode(StrEnum):
    """Stable names of what is wrong with a source."""

    BROKEN_LINK = "BROKEN_LINK"
    """A block's parent hash is not the hash of the block below: two forks are mixed."""
    CONFLICTING_ROW = "CONFLICTING_ROW"
    """Two rows have one key (height, or height and index) and other content."""
    DUPLICATE_ROW = "DUPLICATE_ROW"
    """The same row occurs twice, as after a job that ran again."""
    HALF_WRITTEN = "HALF_WRITTEN"
    """A block's transactions, receipts or logs are not all there, or a file or day ends early."""
    MISSING_BLOCK = "MISSING_BLOCK"
    """A height between the first and the last block has no block."""
    MISSING_FILE = "MISSING_FILE"
    """The ranges in the names of a table's files leave a hole."""
    MISSING_VALUE = "MISSING_VALUE"
    """A cell that must hold a value is empty."""
    OUT_OF_RANGE = "OUT_OF_RANGE"
    """A number is negative, or larger than its column may hold."""
    OVERLAPPING_FILES = "OVERLAPPING_FILES"
    """The ranges in the names of a table's files overlap by more than one border block."""
    RANGE_END = "RANGE_END"
    """A file's rows end one block off its name, or two files share their border block: one tool
    counts the end as included, the other does not."""
    REMOVED_LOG = "REMOVED_LOG"
    """A log is marked as removed: a reorg retracted it before the source was written."""
    WRONG_BLOCK = "WRONG_BLOCK"
    """A row has another block hash than the header at its height: the row is of another fork."""
    WRONG_CHAIN = "WRONG_CHAIN"
    """A file, a transaction or block 0 is of another chain than the deployment record's."""
    WRONG_ENCODING = "WRONG_ENCODING"
    """Text where bytes must be or the other way round, no 0x, upper case, or no number at all."""
    WRONG_LENGTH = "WRONG_LENGTH"
    """A hash, an address or another value of fixed size has another number of bytes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault in one table: how often, and where first."""

    code: FaultCode
    table: str
    """blocks, transactions, receipts or logs."""
    count: int
    """Rows, blocks, links or files, whatever the code speaks of; at least 1."""
    block: int | None
    """Height of the first place, None where no height is known."""
    file: str | None
    """File of the first place, relative to the source folder; None where no file is to blame."""
    expected: str
    got: str
    """The value at the first place."""

    @property
    def place(self) -> str:
        """The first place of the fault, for a person; empty where no place is known."""
        block = [f"block {self.block}"] if self.block is not None else []
        return ", ".join([*block, *([self.file] if self.file is not None else [])])
