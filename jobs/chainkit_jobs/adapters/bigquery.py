"""Exports of BigQuery's public dataset ``bigquery-public-data.crypto_ethereum``.

Its tables ``blocks``, ``transactions`` and ``logs``, exported to Parquet, JSON or CSV (also packed
by gzip) as ``<table>/<any name>`` or ``<table>-000000000000.json``, the name that ``bq extract``
makes of ``<table>-*.json``. The rows of the transactions contain the receipts. Schemas:
github.com/blockchain-etl/ethereum-etl-airflow, dags/resources/stages/enrich/schemas and …/sqls;
github.com/ClickHouse/examples, ethereum/batch/schemas (types of the live tables). How BigQuery
writes types: cloud.google.com/bigquery/docs/exporting-data. INT64 is text in JSON; CSV holds no
lists, so that ``topics`` must be exported as ``ARRAY_TO_STRING(topics, ',') AS topics``.

Columns that the dataset does not hold are null: of headers the mix hash, the parent beacon block's
root, the requests' hash and, in older copies, what came with Shanghai and Cancun; of transactions
the chain, signatures, access lists and authorizations. Such headers and transactions cannot be
proved by their own hashes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile, SourceTables
from chainkit_jobs.adapters.etl_files import Family
from chainkit_jobs.adapters.etl_layout import BLOCKS, LOGS, WITH_RECEIPTS, Kind, SourceColumn
from chainkit_jobs.adapters.etl_rows import tables_with_receipts

COMMAND: Final = (
    "bq extract --destination_format PARQUET bigquery-public-data:crypto_ethereum.TABLE "
    "gs://BUCKET/TABLE-*.parquet"
)
"""The command that writes all columns that an import needs."""

_TABLES: Final = ("blocks", "transactions", "logs")
_ENDINGS: Final = r"(?:parquet|(?:json|csv)(?:\.gz)?)"
_NAME: Final = re.compile(
    rf"(?:.+/)?(?P<table>{'|'.join(_TABLES)})(?:/[^/]+|[-_]?[0-9]*)\.{_ENDINGS}"
)
_DATA: Final = re.compile(rf".+\.{_ENDINGS}")

_FILES: Final = Family(
    "BigQuery",
    {
        "blocks": BLOCKS | {"timestamp": SourceColumn(Kind.TIME)},
        "transactions": WITH_RECEIPTS,
        "logs": LOGS,
    },
    COMMAND,
    f"`{COMMAND}`",
)


@dataclass(frozen=True, slots=True)
class BigQuery:
    """The adapter."""

    @property
    def name(self) -> str:
        """Return ``bigquery``."""
        return "bigquery"

    def files(self, directory: Path) -> Sequence[SourceFile]:
        """List the files of the three tables.

        Raises StoreError where a table has no file, or a file's name contains no table.
        """
        found: list[SourceFile] = []
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            if path.is_dir() or not _DATA.fullmatch(name):
                continue
            match = _NAME.fullmatch(name)
            if match is None:
                expected = f"TABLE/NAME or TABLE-NUMBER, TABLE one of {', '.join(_TABLES)}"
                raise StoreError(f"source {directory}", expected, name)
            found.append(SourceFile(name, match["table"]))
        _FILES.require(directory, found, _TABLES)
        return found

    def check(self, directory: Path) -> None:
        """Look at the columns of every file. Raises StoreError as ``read``."""
        _FILES.groups(directory, self.files(directory))

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        """Return the rows. Raises StoreError where a file lacks a column or has another type."""
        groups = _FILES.groups(directory, self.files(directory))
        blocks, transactions, logs = (
            _FILES.read(spark, directory, table, groups[table]) for table in _TABLES
        )
        return tables_with_receipts(blocks, transactions, logs)
