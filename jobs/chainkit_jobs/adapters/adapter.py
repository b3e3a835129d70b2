"""The interface of an adapter, which reads another tool's files as rows of chainkit.exports.tables.

An adapter converts and marks rows, and decides nothing: whether the rows make a chain is checked
for all adapters in one place (``chainkit_jobs.adapters.checks``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from chainkit.exports.tables import CHAIN_TABLES

KEYS: Final = {
    "blocks": ("number",),
    "transactions": ("block_number", "transaction_index"),
    "receipts": ("block_number", "transaction_index"),
    "logs": ("block_number", "log_index"),
}
"""The key of a row of each table: the height, and an index in the block. The key is also the order
of an export."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that an adapter reads, and the range and table in its name."""

    name: str
    """Relative to the source folder, with slashes: what the rows' ``source_file`` holds."""
    table: str
    """The canonical table of the file's rows."""
    first_block: int | None = None
    last_block: int | None = None
    """The last block that the file covers, included; None where the name has no range. A table with
    a range may have no rows for a block, but none outside of the range."""
    day: date | None = None
    """The UTC day that the file holds, where the source is cut by days."""
    chain_id: int | None = None
    """The chain, where the name contains it."""


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The rows of a source: the columns of chainkit.exports.tables in their order, and three more.

    ``source_file``: string, the SourceFile's name. ``row_chain_id``: decimal(38,0), null where the
    row does not name its chain. ``fault``: FAULT_TYPE, null where the row is fine, else the row's
    first fault; the cell is then null. Every column may be null, even where exports.tables has it
    required. Where the source lacks ``cumulative_gas_used``, the column is null, and the import
    computes it from the sum of ``gas_used``. No row is dropped, repaired or merged.
    """

    blocks: DataFrame
    transactions: DataFrame
    receipts: DataFrame
    logs: DataFrame
    receipts_are_derived: bool = False
    """Whether the receipts come from the rows of the transactions: then faults are counted once."""

    def items(self) -> tuple[tuple[str, DataFrame], ...]:
        """Return the tables' names and frames."""
        return tuple((name, getattr(self, name)) for name in CHAIN_TABLES)


class Adapter(Protocol):
    """Reads one format. An adapter has no state; the folder contains everything."""

    @property
    def name(self) -> str:
        """Return the format: the value of ``--format`` and of the manifest's ``source``."""
        ...

    def files(self, directory: Path) -> Sequence[SourceFile]:
        """List the files that ``read`` reads, in the order of their names.

        Raises StoreError for a folder without files of a table, or with a file name that the tool
        never gives.
        """
        ...

    def check(self, directory: Path) -> None:
        """Look at the columns of every file, without Spark. Raises StoreError as ``read``."""
        ...

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        """Return the rows, lazily, with explicit schemas.

        Raises StoreError that names the file where its columns or types are not the format's
        (expected, got), or columns that an audit needs were left out: then the error has the
        command that writes them.
        """
        ...
