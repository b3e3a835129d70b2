"""A proof of a chain export: values that are proved, wrong, or cannot be proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_PROBLEMS: Final = 1000
"""Problems that are listed one by one, the lowest blocks first; all problems are counted."""

MANIFEST_TABLE: Final = "manifest"
"""The table's name for values of the manifest."""


class ProblemCode(StrEnum):
    """Contradictions. Codes are never renamed: reports and scripts refer to them."""

    BLOCK_MISSING = "BLOCK_MISSING"
    """No header of this block; of several blocks in a row, the first and the last are listed."""
    BLOCK_REPEATED = "BLOCK_REPEATED"
    """More than one header of this height."""
    BLOCK_OUTSIDE = "BLOCK_OUTSIDE"
    """Rows of a block that is not in the range of the manifest."""
    HEADER_HASH = "HEADER_HASH"
    """The fields of a header have another hash than the expected one, or than its column
    ``hash``."""
    PARENT_LINK = "PARENT_LINK"
    """The next block names another parent than this block."""
    TRUSTED_HASH = "TRUSTED_HASH"
    """The last block is another one than the one that is trusted."""
    GENESIS_HASH = "GENESIS_HASH"
    """Block 0 is not the one that the manifest names."""
    CHAIN_ID = "CHAIN_ID"
    """A transaction is of another chain than the manifest's."""
    ROW_MALFORMED = "ROW_MALFORMED"
    """A value that the column, or this type of transaction, cannot have."""
    ROW_MISSING = "ROW_MISSING"
    """The rows of a block are not numbered through, or a transaction has no receipt."""
    ROW_REPEATED = "ROW_REPEATED"
    """Two rows of a table have the same place in a block."""
    ROW_UNEXPECTED = "ROW_UNEXPECTED"
    """A receipt, or a log, of a transaction that the block does not have."""
    BLOCK_HASH = "BLOCK_HASH"
    """A row of this height names another block."""
    TRANSACTION_COUNT = "TRANSACTION_COUNT"
    """The header's row counts more or fewer transactions than there are."""
    TRANSACTION_HASH = "TRANSACTION_HASH"
    """The fields of a transaction have another hash than the row's."""
    TRANSACTIONS_ROOT = "TRANSACTIONS_ROOT"
    """The transactions are not those to which the header commits."""
    SENDER = "SENDER"
    """Another account than ``from_address`` signed the transaction."""
    RECEIPTS_ROOT = "RECEIPTS_ROOT"
    """The receipts, with their logs, are not those to which the header commits."""
    LOGS_BLOOM = "LOGS_BLOOM"
    """The header's filter lacks an address or a topic of a log, or holds what no log has."""
    TRANSACTION_LINK = "TRANSACTION_LINK"
    """A receipt or log contradicts its transaction."""
    LOG_ORDER = "LOG_ORDER"
    """A log precedes a log of an earlier transaction."""
    GAS_USED = "GAS_USED"
    """The gas of a receipt is not what the cumulative gas grew by, or the sum not the header's."""
    CONTRACT_ADDRESS = "CONTRACT_ADDRESS"
    """Another address than the one that sender and nonce give to a new contract."""
    GAS_PRICE = "GAS_PRICE"
    """Another price than the rule of the transaction's type gives."""


class GapCode(StrEnum):
    """Values that nothing in the export can prove, though they may be true. Codes never change."""

    HEADER = "HEADER"
    """A field of the header is missing: the trusted hash proves neither this block nor any
    before."""
    TRANSACTION = "TRANSACTION"
    """A field of the transaction is missing, or its type is not known."""
    TRANSACTIONS_ROOT = "TRANSACTIONS_ROOT"
    """The transactions of a block with such a transaction, or without a root."""
    RECEIPT = "RECEIPT"
    """As TRANSACTION, of a receipt."""
    RECEIPTS_ROOT = "RECEIPTS_ROOT"
    """As TRANSACTIONS_ROOT, of receipts."""
    COLUMN = "COLUMN"
    """Values to which no block commits, and that follow from no value to which a block commits."""
    CONTENT = "CONTENT"
    """The header commits to something that an export does not hold."""
    MANIFEST = "MANIFEST"
    """The manifest's statements beside the tables."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One contradiction, and its place."""

    code: ProblemCode
    block_number: int | None
    """None in rows that have none."""
    table: str
    position: int | None
    """Index of the transaction, receipt or log in its block; None for the whole block."""
    column: str | None
    expected: str
    got: str

    @property
    def sort_key(self) -> tuple[int | str, ...]:
        """By block, then table and place: the same whatever the partitioning."""
        number = -1 if self.block_number is None else self.block_number
        position = -1 if self.position is None else self.position
        rest = (position, self.code, self.column or "", self.expected, self.got)
        return (number, _TABLES.index(self.table), *rest)


_TABLES: Final = (MANIFEST_TABLE, "blocks", "transactions", "receipts", "logs")


WHOLE_BLOCKS: Final = frozenset(GapCode) - {GapCode.COLUMN, GapCode.CONTENT, GapCode.MANIFEST}
"""Gaps in headers, transactions or receipts: they leave whole blocks and logs unproved."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One kind of thing that could not be proved."""

    code: GapCode
    table: str
    column: str | None
    """The column that cannot be proved, or is missing; None for whole rows."""
    detail: str
    """Details, or empty: the type of a transaction, or the manifest's value."""


@dataclass(frozen=True, slots=True)
class Unproved:
    """How much of a gap there is: ``rows``, from the first block to the last that has some."""

    gap: Gap
    rows: int
    first_block: int | None
    """None for values of the manifest."""
    last_block: int | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of each table."""

    blocks: int = 0
    transactions: int = 0
    receipts: int = 0
    logs: int = 0

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(
            self.blocks + other.blocks,
            self.transactions + other.transactions,
            self.receipts + other.receipts,
            self.logs + other.logs,
        )


@dataclass(frozen=True, slots=True)
class ChainProof:
    """The part of a chain export that follows from one trusted block hash."""

    trusted_hash: bytes
    from_block: int
    to_block: int
    held: Counts
    """Rows that the export holds."""
    proved: Counts
    """Rows to which the trusted hash commits: every header from their block up to the trusted one
    hashes to what the next one names, and the root of their table is the header's."""
    problems: tuple[Problem, ...]
    """The first MOST_PROBLEMS, by ``sort_key``."""
    problem_counts: Mapping[ProblemCode, int]
    """All problems, by code."""
    unproved: tuple[Unproved, ...]

    @property
    def problems_total(self) -> int:
        """All problems, listed or only counted."""
        return sum(self.problem_counts.values())

    @property
    def is_anchored(self) -> bool:
        """Return whether every block of the range hangs on the trusted hash."""
        return self.proved.blocks == self.to_block - self.from_block + 1
