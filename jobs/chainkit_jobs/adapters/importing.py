"""An import: another tool's files become a chain export, or a list of their faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports import ExportFolder, Manifest
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.adapters.adapter import Adapter, SourceTables
from chainkit_jobs.adapters.checks import Bounds, in_range, row_faults
from chainkit_jobs.adapters.faults import Fault
from chainkit_jobs.adapters.file_checks import file_faults, read_spans
from chainkit_jobs.adapters.write import write_tables
from chainkit_jobs.recorded import Recorded, recorded

_VECTORIZED: Final = "spark.sql.parquet.enableVectorizedReader"

_HIGHEST: Final = 2**53
"""No chain is this high, and sums of heights below it fit anywhere."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: either a manifest or faults."""

    manifest: Manifest | None
    """None where there are faults: then nothing was written."""
    faults: tuple[Fault, ...]
    """By code, then table."""


def import_chain(
    spark: SparkSession,
    adapter: Adapter,
    directory: Path,
    record: DeploymentRecord | FollowedDeployment,
    out: Path,
    range_blocks: int,
    from_block: int | None = None,
    to_block: int | None = None,
) -> Imported:
    """Check a range of blocks, both ends included, and write it if there is no fault.

    Without bounds: from the first block that can hold a log of the contracts, to the last block of
    the source. Raises StoreError where the source cannot be read, or ``out`` holds anything;
    ConfigurationError for a range without a block.
    """
    # Spark returns paths without links, which the rows' file names are relative to.
    resolved, deployment = directory.resolve(), recorded(record)
    with ExitStack() as stack:
        folder = stack.enter_context(_new_export(out))
        files = adapter.files(resolved)
        stack.enter_context(_row_reader(spark))
        source = stack.enter_context(_converted_once(adapter.read(spark, resolved)))
        bounds = _bounds(source, deployment, from_block, to_block)
        rows = in_range(source, bounds)
        spans = read_spans(source)
        found = [
            *file_faults(files, spans, bounds, deployment.chain_id, to_block is not None),
            *row_faults(rows, bounds, deployment),
        ]
        if found:
            faults = sorted(found, key=lambda fault: (fault.code, fault.table, fault.file or ""))
            return Imported(None, tuple(faults))
        manifest = Manifest(
            kind="chain",
            from_block=bounds.first,
            to_block=bounds.last,
            to_block_hash=hex0x(_hash_of(rows, bounds.last)),
            files=write_tables(folder, rows, bounds, range_blocks),
            range_blocks=range_blocks,
            source=adapter.name,
            **deployment.about,
        )
        folder.publish(manifest)
        return Imported(manifest, ())


def check_new_export(out: Path) -> None:
    """Raise StoreError where ``import_chain`` could not write to ``out``; leave nothing there."""
    with _new_export(out):
        pass


@contextmanager
def _new_export(out: Path) -> Iterator[ExportFolder]:
    with ExportFolder(out, "chain", CHAIN_TABLES) as folder:
        if folder.manifest is not None:
            raise StoreError(f"export {out}", "a folder without an export", folder.manifest.source)
        yield folder


def _bounds(
    source: SourceTables, record: Recorded, from_block: int | None, to_block: int | None
) -> Bounds:
    first = record.first_block if from_block is None else from_block
    if to_block is None:
        row = source.blocks.agg(sf.max("number").alias("last")).first()
        to_block = None if row is None else row["last"]
    if to_block is None:
        raise StoreError("source", "blocks with a number", "none")
    if to_block > _HIGHEST:
        raise StoreError("source", f"heights up to {_HIGHEST}", to_block)
    if first > to_block:
        raise ConfigurationError("--from-block", f"at most the last block, {to_block}", first)
    return Bounds(first, to_block)


def _hash_of(rows: SourceTables, height: int) -> bytes:
    row = rows.blocks.where(sf.col("number") == height).select("hash").first()
    assert row is not None  # the checks found no block missing
    return bytes(row["hash"])


@contextmanager
def _converted_once(source: SourceTables) -> Iterator[SourceTables]:
    """Keep the rows on the workers' disks: each check reads them, and none converts them again."""
    # Otherwise the plan of each check contains the conversions, and is too large.
    frames = {table: frame.persist(StorageLevel.DISK_ONLY) for table, frame in source.items()}
    try:
        yield replace(
            source,
            blocks=frames["blocks"],
            transactions=frames["transactions"],
            receipts=frames["receipts"],
            logs=frames["logs"],
        )
    finally:
        for frame in frames.values():
            frame.unpersist()


@contextmanager
def _row_reader(spark: SparkSession) -> Iterator[None]:
    """Read Parquet row by row: Spark's vectorized reader fails on pages as cryo writes them."""
    before = spark.conf.get(_VECTORIZED)
    spark.conf.set(_VECTORIZED, "false")
    try:
        yield
    finally:
        spark.conf.set(_VECTORIZED, before or "true")
