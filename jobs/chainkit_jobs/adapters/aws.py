"""AWS Public Blockchain Data: ``aws-public-blockchain/v1.0/eth``, Parquet by day.

``<table>/date=YYYY-MM-DD/<name>.parquet`` for the tables ``blocks``, ``transactions`` (whose rows
hold the receipts) and ``logs``. Schemas: github.com/aws-solutions-library-samples/
guidance-for-digital-assets-on-aws, analytics/consumer/schema/eth.md and …/glue/schema.yaml; how
its cells are made: analytics/producer/copilot/ethereum-worker/worker.py.

**``transactions.value`` is documented as a double**, in which most amounts of wei are rounded: such
a file is refused, and the transactions must come from elsewhere (as a copy of this layout whose
``value`` is a decimal or text, or all from BigQuery, ethereum-etl or ``chainkit audit
export-chain``). ``difficulty`` is a double too, and never read. A column that the layout lacks is
null: of headers the difficulty, the mix hash and all that came with Shanghai and later; of
transactions the chain, signatures, access lists, blobs and authorizations. Such headers and
transactions cannot be proved by their own hashes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile, SourceTables
from chainkit_jobs.adapters.etl_files import Family, day_of
from chainkit_jobs.adapters.etl_layout import BLOCKS, LOGS, WITH_RECEIPTS, Kind, SourceColumn
from chainkit_jobs.adapters.etl_rows import tables_with_receipts

COMMAND: Final = "aws s3 sync --no-sign-request s3://aws-public-blockchain/v1.0/eth/TABLE DIR/TABLE"
"""The command that copies all files that an import needs."""

_TABLES: Final = ("blocks", "transactions", "logs")
_OTHER_TABLES: Final = ("contracts", "token_transfers", "traces")
_NAME: Final = re.compile(
    rf"(?P<table>{'|'.join(_TABLES)})/date=(?P<day>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})"
    r"/[^/._][^/]*\.parquet"
)
_MARKERS: Final = re.compile(r"(?:.+/)?(?:_SUCCESS|\.[^/]+\.crc)")
"""Files without rows that Spark writes beside its data files."""

_EMPTY: Final = ("to_address", "receipt_contract_address")
"""Where the layout may write no address as an empty string."""

_BLOCKS: Final = {name: column for name, column in BLOCKS.items() if name != "difficulty"}

_FILES: Final = Family(
    "AWS",
    {
        "blocks": _BLOCKS | {"timestamp": SourceColumn(Kind.TIME)},
        "transactions": WITH_RECEIPTS,
        "logs": LOGS,
    },
    COMMAND,
    "`--format bigquery`, `--format ethereum-etl` or `chainkit audit export-chain`",
)


@dataclass(frozen=True, slots=True)
class Aws:
    """The adapter."""

    @property
    def name(self) -> str:
        """Return ``aws``."""
        return "aws"

    def files(self, directory: Path) -> Sequence[SourceFile]:
        """List the files of the three tables; other tables' files are passed over.

        Raises StoreError where a table has no file, or a folder holds anything but a day's files,
        such as the remains of an interrupted copy.
        """
        found: list[SourceFile] = []
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_dir() or _MARKERS.fullmatch(name) or name.split("/")[0] in _OTHER_TABLES:
                continue
            match = _NAME.fullmatch(name)
            if match is None:
                expected = f"TABLE/date=YYYY-MM-DD/NAME.parquet (`{COMMAND}`)"
                raise StoreError(f"source {directory}", expected, name)
            found.append(SourceFile(name, match["table"], day=day_of(directory, match["day"])))
        _FILES.require(directory, found, _TABLES)
        return found

    def check(self, directory: Path) -> None:
        """Look at the columns of every file. Raises StoreError as ``read``."""
        _FILES.groups(directory, self.files(directory))

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        """Return the rows.

        Raises StoreError where a file lacks a column or has another type, above all where amounts
        of wei are doubles.
        """
        groups = _FILES.groups(directory, self.files(directory))
        blocks, transactions, logs = (
            _FILES.read(spark, directory, table, groups[table]) for table in _TABLES
        )
        for name in _EMPTY:
            transactions = transactions.withColumn(name, sf.nullif(sf.col(name), sf.lit("")))
        return tables_with_receipts(blocks, transactions, logs)
