"""Writes checked rows as a chain export: Spark's workers make the files, one per range and table.

The folder must be on a disk that the workers share with whoever runs the import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from chainkit.exports import ExportFolder, TableWriter, flush
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.adapter import KEYS, SourceTables
from chainkit_jobs.adapters.checks import Bounds
from chainkit_jobs.chain_export.range_files import BlockRange, ranges_of

_RANGE: Final = "range_index"
_WRITTEN: Final = "range_index long, staged string, rows long"


def write_tables(
    folder: ExportFolder, source: SourceTables, bounds: Bounds, range_blocks: int
) -> dict[str, Mapping[str, Any]]:
    """Write the checked rows of a range, and return the manifest's entries of the files.

    Ranges are cut at the multiples of ``range_blocks``; a range without rows gets a file as well.
    The same rows give the same bytes, however Spark divides the work. Raises StoreError where the
    folder takes no more.
    """
    files: dict[str, Mapping[str, Any]] = {}
    ranges = list(ranges_of(bounds.first, bounds.last, range_blocks))
    for table, frame in source.items():
        written = _write_ranges(folder.staging, table, frame, range_blocks)
        for blocks in ranges:
            name, about = _add(folder, table, blocks, written.get(blocks.first // range_blocks))
            files[name] = about
    return files


def _add(
    folder: ExportFolder, table: str, blocks: BlockRange, written: tuple[str, int] | None
) -> tuple[str, dict[str, Any]]:
    name, is_finished = blocks.file_name(table), blocks.is_finished
    if written is None:
        full_name, about = folder.write(name, CHAIN_TABLES[table], [], is_finished)
    else:
        staged, rows = written
        full_name, about = folder.add(name, folder.staging / staged, rows, is_finished)
    place = {"from_block": blocks.first, "to_block": blocks.last, "finished": is_finished}
    return full_name, about | place


def _write_ranges(
    staging: Path, table: str, frame: DataFrame, range_blocks: int
) -> dict[int, tuple[str, int]]:
    """Write the files of a table; return their names and rows by the index of their range."""
    height = sf.col(KEYS[table][0])
    index = sf.floor(height / range_blocks).cast("long")
    ranged = frame.withColumn(_RANGE, index).repartition(_RANGE)
    if table == "receipts":
        ranged = _with_cumulative_gas(ranged)
    rows = ranged.select(_RANGE, *CHAIN_TABLES[table].names).sortWithinPartitions(
        _RANGE, *KEYS[table]
    )
    write = _writer(str(staging.resolve()), CHAIN_TABLES[table])
    return {row[0]: (row[1], row[2]) for row in rows.mapInArrow(write, _WRITTEN).collect()}


def _with_cumulative_gas(receipts: DataFrame) -> DataFrame:
    """Sum the gas up to each transaction of its block where the source lacks the sum."""
    # Within the partitions that there are: no second shuffle.
    up_to_here = Window.partitionBy(_RANGE, "block_number").orderBy("transaction_index")
    stated, counted = sf.col("cumulative_gas_used"), sf.sum("gas_used").over(up_to_here)
    return receipts.withColumn("cumulative_gas_used", sf.coalesce(stated, counted))


def _writer(
    staging: str, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a worker over its rows, which come sorted by range and key."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for index, tables in _by_range(batches):
            # A task that is tried again, or twice at once, leaves the other's file alone.
            name = f"{uuid4().hex}.parquet"
            rows = _write_file(Path(staging) / name, schema, tables)
            columns = [
                pa.array([index], pa.int64()),
                pa.array([name]),
                pa.array([rows], pa.int64()),
            ]
            yield pa.RecordBatch.from_arrays(columns, [_RANGE, "staged", "rows"])

    return write


def _by_range(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Divide sorted batches into ranges; each one's tables must be read before the next range."""
    pieces = (piece for batch in batches for piece in _pieces(batch))
    waiting = next(pieces, None)
    while waiting is not None:
        index = waiting[0]

        def same(index: int = index) -> Iterator[pa.Table]:
            nonlocal waiting
            while waiting is not None and waiting[0] == index:
                yield waiting[1]
                waiting = next(pieces, None)

        yield index, same()


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
    table = pa.Table.from_batches([batch])
    indices = table.column(_RANGE)
    for index in pc.unique(indices).to_pylist():
        yield index, table.filter(pc.equal(indices, index)).drop_columns([_RANGE])


def _write_file(path: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> int:
    with TableWriter(path, schema) as writer:
        for table in tables:
            writer.append(table.cast(schema))
    flush(path)
    return writer.rows
