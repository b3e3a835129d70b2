"""Exports on disk as typed frames, after proof that they are of the same chain."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.contracts.followed import parse_payload_contracts
from chainkit.documents.files import unreadable
from chainkit.errors import ConfigurationError, StoreError
from chainkit.evidence.emission import EmittingContracts
from chainkit.exports import (
    MANIFEST_NAME,
    PARQUET_ERRORS,
    Manifest,
    check_files,
    columns_problem,
    files_of,
    load_manifest,
    one_line,
    tables,
)
from chainkit.protocol.payload_contract import PayloadContract
from chainkit.terminal.bar import progress_bar
from chainkit.types import Log, TopicKind
from chainkit_jobs.spark_paths import spark_paths

RAW_ENVELOPES: Final = pa.schema(
    [("sequence_id", tables.UINT64), pa.field("envelope", pa.binary(), nullable=False)]
)
"""All columns that are read of a node's file. The sequence is a claim: null, or any number."""

_HIGHEST_SEQUENCE: Final = Decimal(2**64 - 1)

PAYLOAD_CONTRACTS: Final = ("GroupMessages", "IdentityUpdates")
"""Our own contracts whose events become envelopes: a node's export need name no others."""

_KINDS: Final = (TopicKind.GROUP_MESSAGE, TopicKind.IDENTITY_UPDATE)


@dataclass(frozen=True, slots=True)
class Export:
    """A finished export; ``prove_export`` checks whether its files are those of its manifest."""

    directory: Path
    manifest: Manifest
    manifest_digest: str
    """sha256 of the manifest, in hex: the manifest names the digest of every file."""

    def contract(self, name: str) -> bytes:
        """Return a contract's address. Raises StoreError if the manifest does not name it."""
        try:
            return bytes.fromhex(self.manifest.contracts[name].removeprefix("0x"))
        except (KeyError, ValueError) as error:
            subject = f"export {self.directory}"
            raise StoreError(subject, f"the address of {name}", "none", MANIFEST_NAME) from error

    def named(self) -> dict[str, Any]:
        """Return what names a chain export in a summary: chain, contracts, range and digest."""
        manifest = self.manifest
        return {
            "chain_id": manifest.chain_id,
            "genesis_hash": manifest.genesis_hash,
            "contracts": dict(manifest.contracts),
            "from_block": manifest.from_block,
            "to_block": manifest.to_block,
            "to_block_hash": manifest.to_block_hash,
            "manifest_sha256": self.manifest_digest,
        }


def payload_contracts(chain: Export) -> tuple[PayloadContract, ...]:
    """Return the contracts whose events are payloads: those that a chain export lists, or our own.

    Raises StoreError where the manifest names none, or describes an impossible one.
    """
    manifest, subject = chain.manifest, f"export {chain.directory}"
    if manifest.payload_contracts is None:
        first = manifest.first_payload_block or 0
        return tuple(
            PayloadContract(name, chain.contract(name), first, kind)
            for name, kind in zip(PAYLOAD_CONTRACTS, _KINDS, strict=True)
        )
    try:
        contracts = parse_payload_contracts(manifest.payload_contracts, subject)
    except ConfigurationError as error:
        raise StoreError(subject, error.expected, error.got, MANIFEST_NAME) from error
    for contract in contracts:
        if chain.contract(contract.name) != contract.address:
            expected = f"{contract.name} at one address"
            raise StoreError(subject, expected, "two", MANIFEST_NAME)
    return contracts


def emitting_contracts(chain: Export) -> EmittingContracts:
    """Return the same contracts for the checks of evidence."""
    return EmittingContracts(payload_contracts(chain), chain.manifest.payload_contracts is None)


def open_export(directory: Path, kind: str) -> Export:
    """Read an export's manifest, but not its files. Raises StoreError; see load_manifest."""
    manifest = load_manifest(directory, kind)
    digest = hashlib.sha256((directory / MANIFEST_NAME).read_bytes()).hexdigest()
    return Export(directory, manifest, digest)


def prove_export(
    export: Export,
    report: Callable[[int], None] = lambda more: None,
    threads: int | None = None,
) -> None:
    """Prove an export's files by their digests. Raises StoreError; see exports.check_files."""
    directory, manifest = export.directory, export.manifest
    with progress_bar(f"checking {directory}", len(manifest.files)) as advance:

        def proved(more: int) -> None:
            advance(more)
            report(more)

        check_files(directory, manifest, proved, threads)


def read_export(directory: Path, kind: str) -> Export:
    """Open an export, and prove its files. Raises StoreError."""
    export = open_export(directory, kind)
    prove_export(export)
    return export


def check_same_network(chain: Export, nodes: Sequence[Export]) -> None:
    """Prove that all exports name one chain and the same payload contracts.

    Raises StoreError that names the export and the difference.
    """
    for node in nodes:
        subject = f"export {node.directory}"
        for name in ("chain_id", "genesis_hash"):
            expected, got = getattr(chain.manifest, name), getattr(node.manifest, name)
            if str(expected).lower() != str(got).lower():
                raise StoreError(subject, f"{name} {expected} as in {chain.directory}", got)
        for contract in payload_contracts(chain):
            other = node.contract(contract.name)
            if contract.address != other:
                expected = f"{contract.name} at 0x{contract.address.hex()} as in {chain.directory}"
                raise StoreError(subject, expected, f"0x{other.hex()}")


def read_blocks(spark: SparkSession, chain: Export) -> DataFrame:
    """Return the blocks of a chain export (columns of exports.tables.BLOCKS)."""
    return _read(spark, chain, "blocks", tables.BLOCKS)


def block_hashes(chain: Export, numbers: Set[int]) -> dict[int, bytes]:
    """Return the hashes of few blocks, those that a chain export holds, by number.

    Raises StoreError where a file cannot be read.
    """
    paths = table_paths(chain, "blocks", tables.BLOCKS)
    try:
        rows = pq.read_table(
            paths,
            columns=["number", "hash"],
            filters=pc.field("number").isin(sorted(numbers)),
        )
    except (OSError, pa.ArrowException) as error:
        subject = f"export {chain.directory}"
        raise unreadable(StoreError, subject, error, "blocks in Parquet") from error
    return {row["number"]: row["hash"] for row in rows.to_pylist()}


def read_transactions(spark: SparkSession, chain: Export) -> DataFrame:
    """Return the transactions of a chain export (columns of exports.tables.TRANSACTIONS)."""
    return _read(spark, chain, "transactions", tables.TRANSACTIONS)


def read_receipts(spark: SparkSession, chain: Export) -> DataFrame:
    """Return the receipts of a chain export (columns of exports.tables.RECEIPTS)."""
    return _read(spark, chain, "receipts", tables.RECEIPTS)


def read_logs(spark: SparkSession, chain: Export) -> DataFrame:
    """Return the logs of a chain export (columns of exports.tables.LOGS)."""
    return _read(spark, chain, "logs", tables.LOGS)


def read_raw_envelopes(spark: SparkSession, nodes: Mapping[int, Export]) -> DataFrame:
    """Return the nodes' envelopes as served, with nothing derived that the audit would trust.

    ``nodes`` are the exports by node id. Columns: ``node_id``, ``row_index`` (position in the
    node's files, in the order of their names), ``claimed_sequence_id`` (from the node's table, for
    rows that cannot be read; 0 where the table has no uint64) and ``envelope``.
    """
    claimed = sf.col("sequence_id")
    is_claimed = claimed.between(0, sf.lit(_HIGHEST_SEQUENCE))
    hidden = ("_metadata.row_index", "_metadata.file_name")
    frames = [
        _read(spark, export, "envelopes", RAW_ENVELOPES, *hidden)
        .join(sf.broadcast(_rows_before(spark, export)), "file_name", "inner")
        .select(
            sf.lit(node_id).cast("long").alias("node_id"),
            (sf.col("row_index") + sf.col("rows_before")).alias("row_index"),
            sf.when(is_claimed, claimed)
            .otherwise(sf.lit(0).cast("decimal(20,0)"))
            .alias("claimed_sequence_id"),
            sf.col("envelope"),
        )
        for node_id, export in nodes.items()
    ]
    return reduce(DataFrame.unionByName, frames)


def _rows_before(spark: SparkSession, export: Export) -> DataFrame:
    """Return how many rows precede those of each file.

    By the files' own footers, not by the manifest: a position with two rows would mix up their
    evidence.
    """
    paths = table_paths(export, "envelopes", RAW_ENVELOPES)
    counts = [pq.read_metadata(path).num_rows for path in paths]
    # The files of a table are in one folder, so their names differ.
    before = [0, *accumulate(counts)][: len(paths)]
    rows = [(path.name, count) for path, count in zip(paths, before, strict=True)]
    return spark.createDataFrame(rows, "file_name string, rows_before long")


def envelopes_problem(export: Export) -> str | None:
    """Return by its files' footers why a node's export cannot be compared, or None where it can."""
    try:
        paths = table_paths(export, "envelopes", RAW_ENVELOPES)
        nulls = sum(map(_rows_without_envelope, paths))
    except (StoreError, *PARQUET_ERRORS) as error:
        return f"its export cannot be read: {one_line(error)}"
    return f"its export cannot be read: {nulls} rows have no envelope" if nulls else None


def _rows_without_envelope(path: Path) -> int:
    metadata = pq.read_metadata(path)
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    column = names.index("envelope")
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    statistics = (group.column(column).statistics for group in groups)
    return sum(each.null_count or 0 for each in statistics if each is not None)


def log_from_row(row: Mapping[str, Any]) -> Log:
    """Return a log from a row of exports.tables.LOGS, in each of Spark's forms."""
    columns: dict[str, Any] = {name: row[name] for name in Log._fields if name in row}
    for name in ("address", "data", "block_hash", "transaction_hash"):
        columns[name] = bytes(row[name])
    columns["topics"] = tuple(bytes(topic) for topic in row["topics"])
    return Log(**columns)


def _read(
    spark: SparkSession, export: Export, table: str, schema: pa.Schema, *hidden: str
) -> DataFrame:
    paths = spark_paths(spark, table_paths(export, table, schema))
    frame = spark.read.schema(from_arrow_schema(schema)).parquet(*paths)
    return frame.select(*schema.names, *hidden)


def table_paths(export: Export, table: str, schema: pa.Schema) -> list[Path]:
    """Return a table's files, one or one per range of blocks, in the order of the blocks."""
    names = files_of(export.manifest, table)
    if not names:
        raise StoreError(f"export {export.directory}", f"the table {table}", "none", MANIFEST_NAME)
    # A link's own name, which is safe, and not the name of the link's target.
    paths = [export.directory.resolve() / name for name in names]
    for path in paths:
        if (problem := columns_problem(path, schema)) is not None:
            raise StoreError(f"export file {path}", *problem)
    return paths
