"""ethereum-etl's CSV and JSON files (version 2.4), of its commands ``export_…`` and ``stream``.

``export_all`` writes ``<table>/start_block=F/end_block=L/<table>_F_L.csv`` (both ends included) or
``<table>/date=D/<table>_F_L.csv``; the single commands take the file's name, which must be
``<table>.csv`` or ``<table>.json`` here. ``stream`` prints all of its items to the console: this
output must be called ``stream.json``, and the rows of its transactions contain the receipts.
Columns: github.com/blockchain-etl/ethereum-etl, docs/schema.md, ethereumetl/jobs/exporters and
ethereumetl/streaming/enrich.py.

Columns that the tool never writes are null: of headers the mix hash, the parent beacon block's root
and the requests' hash; of transactions the chain, signatures, access lists and authorizations. Nor
is ``l1_fee_scalar`` taken: the tool passes it through a double. Such headers and transactions
cannot be proved by their own hashes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.adapter import SourceFile, SourceTables
from chainkit_jobs.adapters.cells import fault
from chainkit_jobs.adapters.etl_files import Family, day_of
from chainkit_jobs.adapters.etl_layout import (
    BLOCKS,
    CORRUPT,
    LOGS,
    RECEIPTS,
    TRANSACTIONS,
    WITH_RECEIPTS,
    Kind,
    SourceColumn,
)
from chainkit_jobs.adapters.etl_rows import (
    block_rows,
    log_rows,
    receipt_cells,
    receipt_rows,
    tables_with_receipts,
    transaction_rows,
)
from chainkit_jobs.adapters.faults import FaultCode

COMMAND: Final = "ethereumetl export_all --start FROM --end TO --output-dir DIR"
"""The command that writes all tables and columns that an import needs."""
STREAM_COMMAND: Final = "ethereumetl stream --entity-types block,transaction,log > stream.json"
"""The same as one file."""

_OTHER_TABLES: Final = ("contracts", "tokens", "token_transfers", "traces", "geth_traces")
_STREAM: Final = "stream"

_NAME: Final = re.compile(
    rf"(?P<table>{'|'.join((*CHAIN_TABLES, *_OTHER_TABLES))})"
    r"(?:_(?P<first>[0-9]+)_(?P<last>[0-9]+))?\.(?:csv|json)"
)
_RANGE: Final = re.compile(r"start_block=([0-9]+)/end_block=([0-9]+)")
_DAY: Final = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})")

_ITEM_TYPE: Final = {"type": SourceColumn(Kind.TEXT)}
_ITEMS: Final = {"blocks": "block", "transactions": "transaction", "logs": "log"}
"""Table to the type of its items in a stream."""

_FILES: Final = Family(
    "ethereum-etl",
    {
        "blocks": BLOCKS,
        "transactions": TRANSACTIONS,
        "receipts": RECEIPTS,
        "logs": LOGS,
    },
    COMMAND,
    f"`{COMMAND}`",
)
_STREAMS: Final = Family(
    "ethereum-etl",
    {
        "blocks": _ITEM_TYPE | BLOCKS,
        "transactions": _ITEM_TYPE | WITH_RECEIPTS,
        "logs": _ITEM_TYPE | LOGS,
    },
    STREAM_COMMAND,
    f"`{STREAM_COMMAND}`",
    is_mixed=True,
)


@dataclass(frozen=True, slots=True)
class EthereumEtl:
    """The adapter."""

    @property
    def name(self) -> str:
        """Return ``ethereum-etl``."""
        return "ethereum-etl"

    def files(self, directory: Path) -> Sequence[SourceFile]:
        """List the CSV and JSON files of the four tables; other tables' files are passed over.

        Raises StoreError where a table has no file, a name is not the tool's or contradicts its
        folders, or the folder still holds the remains of an unfinished ``export_all``.
        """
        found: list[SourceFile] = []
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_dir():
                continue
            if name.startswith(".tmp/"):
                expected = "a finished export_all, which clears its folder .tmp"
                raise StoreError(f"source {directory}", expected, name)
            if path.suffix in (".csv", ".json"):
                found += _source_files(directory, name)
        if any(_is_stream(file) for file in found):
            _require_streams(directory, found)
        else:
            _FILES.require(directory, found, CHAIN_TABLES)
        return found

    def check(self, directory: Path) -> None:
        """Look at the columns of every file. Raises StoreError as ``read``."""
        files = self.files(directory)
        _family(files).groups(directory, files)

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        """Return the rows. Raises StoreError where a file is cut off or lacks a column."""
        files = self.files(directory)
        if _family(files) is _STREAMS:
            return _of_stream(spark, directory, files)
        groups = _FILES.groups(directory, files)
        frames = {
            table: _FILES.read(spark, directory, table, groups[table]) for table in CHAIN_TABLES
        }
        return SourceTables(
            blocks=block_rows(frames["blocks"]),
            transactions=transaction_rows(frames["transactions"]),
            receipts=_receipts(frames["receipts"], frames["transactions"]),
            logs=log_rows(frames["logs"]),
        )


def _source_files(directory: Path, name: str) -> list[SourceFile]:
    subject, file = f"source {directory}", name.rpartition("/")[2]
    if file == f"{_STREAM}.json":
        return [SourceFile(name, table) for table in _ITEMS]
    match = _NAME.fullmatch(file)
    if match is None:
        expected = "TABLE.csv, TABLE.json, TABLE_FROM_TO.csv or stream.json"
        raise StoreError(subject, expected, name)
    if match["table"] in _OTHER_TABLES:
        return []
    first, last = (None if match[end] is None else int(match[end]) for end in ("first", "last"))
    folders, day = _RANGE.search(name), _DAY.search(name)
    if folders and (int(folders[1]), int(folders[2])) != (first, last):
        expected = f"a file of blocks {int(folders[1])} to {int(folders[2])}"
        raise StoreError(subject, expected, name)
    in_day = day_of(directory, day[1]) if day else None
    return [SourceFile(name, match["table"], first, last, in_day)]


def _is_stream(file: SourceFile) -> bool:
    return file.name.rpartition("/")[2] == f"{_STREAM}.json"


def _family(files: Sequence[SourceFile]) -> Family:
    return _STREAMS if _is_stream(files[0]) else _FILES


def _require_streams(directory: Path, files: Sequence[SourceFile]) -> None:
    for file in files:
        if not _is_stream(file):
            raise StoreError(f"source {directory}", "a stream alone, or no stream", file.name)


def _of_stream(spark: SparkSession, directory: Path, files: Sequence[SourceFile]) -> SourceTables:
    groups = _STREAMS.groups(directory, files)

    def items(table: str) -> DataFrame:
        frame = _STREAMS.read(spark, directory, table, groups[table])
        # A line that is no item is reported once: among the blocks.
        is_corrupt = sf.col(CORRUPT).isNotNull() & sf.lit(table == "blocks")
        return frame.where((sf.col("type") == _ITEMS[table]) | is_corrupt)

    return tables_with_receipts(items("blocks"), items("transactions"), items("logs"))


def _receipts(receipts: DataFrame, transactions: DataFrame) -> DataFrame:
    """Add the columns of the transactions alone: type, sender, recipient and offered price."""
    columns = ("transaction_type", "from_address", "to_address", "gas_price")
    # A repeated transaction must not double its receipt; the transactions' check reports the
    # repetition, and whether both rows are alike.
    by_hash = transactions.groupBy(sf.col("hash").alias("transaction_hash")).agg(
        sf.min(sf.struct(*columns)).alias("columns")
    )
    joined = receipts.join(by_hash, "transaction_hash", "left").select(
        *receipts.columns, sf.col("columns").isNull().alias("is_orphan"), "columns.*"
    )
    expected = "transaction_hash: of a row in transactions"
    orphan = fault(FaultCode.MISSING_VALUE, expected, "transaction_hash")
    cells = receipt_cells(joined, "transaction_hash", "")
    is_orphan = "is_orphan and transaction_hash is not null"
    return receipt_rows(joined, cells, f"case when {is_orphan} then {orphan} end")
