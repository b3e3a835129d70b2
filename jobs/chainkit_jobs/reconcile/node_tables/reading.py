"""The tables of nodes' exports beside the envelopes: which exist, and whether they are readable.

No fault here ends an audit: a sentence reports what one node's export lacks, and the others are
compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.exports import PARQUET_ERRORS, columns_problem, files_of, one_line
from chainkit.exports.tables import ENVELOPES, JOURNAL, QUARANTINE, REGISTRY_UPDATES
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.sources import Export
from chainkit_jobs.spark_paths import spark_paths

SCHEMAS: Final = {
    "envelopes": ENVELOPES,
    "quarantine": QUARANTINE,
    "journal": JOURNAL,
    "registry_updates": REGISTRY_UPDATES,
}
"""The tables of a node's export, by name."""


def paths_of(export: Export, table: str) -> list[Path]:
    """Return a table's files in the order of their blocks; none where the export lacks it."""
    return [export.directory.resolve() / name for name in files_of(export.manifest, table)]


def missing_tables(export: Export) -> list[str]:
    """Return the tables that an export does not hold: an older one has no journal.

    A node's answers have no columns beside its envelopes.
    """
    if export.manifest.is_of_answers:
        return list(SCHEMAS)
    return [table for table in SCHEMAS if not files_of(export.manifest, table)]


def has_rows(export: Export, table: str) -> bool:
    """Return whether a table that can be read has any row."""
    return any(pq.read_metadata(path).num_rows for path in paths_of(export, table))


def table_problem(export: Export, table: str, with_rows: bool = True) -> str | None:
    """Return why a table that the export holds cannot be read, or None where it can.

    ``with_rows`` reads each row, because a failure half-way in Spark would end the audit of all
    nodes; otherwise only the columns' types are checked.
    """
    schema = SCHEMAS[table]
    for path in paths_of(export, table):
        found = columns_problem(path, schema)
        problem = None if found is None else "expected {}, got {}".format(*found)
        if problem is None and with_rows:
            problem = _rows_problem(path, schema)
        if problem is not None:
            return f"{path.name}: {problem}"
    return None


def _rows_problem(path: Path, schema: pa.Schema) -> str | None:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=schema.names):
                for field in schema:
                    if not field.nullable and batch.column(field.name).null_count:
                        return f"a row has no {field.name}"
    except PARQUET_ERRORS as error:
        return one_line(error)
    return None


def read_tables(
    spark: SparkSession, nodes: Sequence[NodeExport], table: str, columns: Sequence[str] = ()
) -> DataFrame:
    """Return a table of several nodes: ``node_id``, then ``columns`` (all where none is named).

    Each node has the table, with the right columns.
    """
    schema = from_arrow_schema(SCHEMAS[table])
    frames = [
        spark.read.schema(schema)
        .parquet(*spark_paths(spark, paths_of(node.export, table)))
        .select(sf.lit(node.node.node_id).cast("long").alias("node_id"), *(columns or schema.names))
        for node in nodes
    ]
    return reduce(DataFrame.unionByName, frames)


def read_registry_rows(node: NodeExport) -> list[Mapping[str, object]]:
    """Return a node's history of the registry (columns of exports.tables.REGISTRY_UPDATES).

    Persons cause these rows: they are few.
    """
    tables = [pq.read_table(path) for path in paths_of(node.export, "registry_updates")]
    return [row for table in tables for row in table.to_pylist()]
