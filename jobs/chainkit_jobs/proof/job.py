"""The proof in Spark: all tables in one shuffle by block, then block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.errors import ConfigurationError
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.proof.block import Claims, check_block
from chainkit_jobs.proof.manifest import unproved_claims
from chainkit_jobs.proof.result import ChainProof, Counts
from chainkit_jobs.proof.stream import DEMAND, blocks_of
from chainkit_jobs.proof.tally import TALLIES, Tally, sum_of
from chainkit_jobs.sources import (
    Export,
    read_blocks,
    read_logs,
    read_receipts,
    read_transactions,
)

_PLACE: Final = ("block_number", "kind", "position")


def check_trusted_hash(chain: Export, trusted_hash: bytes) -> None:
    """Prove that an export's manifest ends in the trusted block. Raises ConfigurationError.

    Only then can anything be proved; prove_chain checks whether the manifest is right.
    """
    manifest = chain.manifest
    if bytes.fromhex(manifest.to_block_hash[2:]) != trusted_hash:
        # The error must not show the export's own hash: somebody would paste it, and trust the
        # export.
        where = f"block {manifest.to_block}"
        expected = f"the hash of {where}, in which export {chain.directory} says that it ends"
        hint = f"take the hash of {where} from a node or explorers of your choice, or export again"
        raise ConfigurationError("--trust", expected, f"0x{trusted_hash.hex()}", hint)


def prove_chain(spark: SparkSession, chain: Export, trusted_hash: bytes) -> ChainProof:
    """Check everything in the tables of a chain export against one block hash (32 bytes).

    Raises ConfigurationError as check_trusted_hash, StoreError where a table cannot be read.
    Whatever is wrong in the tables is in the result.
    """
    check_trusted_hash(chain, trusted_hash)
    manifest = chain.manifest
    claims = Claims(
        manifest.chain_id,
        bytes.fromhex(manifest.genesis_hash[2:]),
        manifest.from_block,
        manifest.to_block,
    )
    rows = united(spark, chain, trusted_hash)
    tally = _run(rows, claims)
    proved = tally.proved
    if tally.highest_break is not None:
        # A block that is not proved proves no earlier block. Later blocks are counted once more:
        # only now is the reach of the trusted hash known.
        proved = Counts()
        if tally.highest_break < manifest.to_block:
            proved = _run(rows.filter(sf.col("block_number") > tally.highest_break), claims).proved
    return ChainProof(
        trusted_hash,
        manifest.from_block,
        manifest.to_block,
        held=tally.held,
        proved=proved,
        problems=tuple(tally.problems),
        problem_counts=dict(sorted(tally.problem_counts.items())),
        unproved=(*tally.unproved, *unproved_claims(manifest, tally.chain_ids > 0)),
    )


def united(spark: SparkSession, chain: Export, trusted_hash: bytes) -> DataFrame:
    """Return the rows of all tables in one frame: block_number, kind, position, and one struct.

    Further rows list the required blocks, so that each block is checked alone: the first, those
    before and after each header, and the last; with a hash, in ``demanded``, where the next header
    or the auditor names it.
    """
    manifest = chain.manifest
    first, last = manifest.from_block, manifest.to_block
    blocks = read_blocks(spark, chain)
    number = sf.col("number")
    ends = spark.createDataFrame(
        [(first, None), (last, bytearray(trusted_hash))], "block_number long, demanded binary"
    )
    before = blocks.filter(number.between(first + 1, last)).select(
        (number - 1).alias("block_number"), sf.col("parent_hash").alias("demanded")
    )
    after = blocks.filter(number.between(first, last - 1)).select(
        (number + 1).alias("block_number"), sf.lit(None).cast("binary").alias("demanded")
    )
    demands = (frame.withColumn("kind", sf.lit(DEMAND)) for frame in (ends, before, after))
    held = (
        _tagged(blocks, 1, "blocks", "number", "number"),
        _tagged(read_transactions(spark, chain), 2, "transactions", *_TRANSACTION_PLACE),
        _tagged(read_receipts(spark, chain), 3, "receipts", *_TRANSACTION_PLACE),
        _tagged(read_logs(spark, chain), 4, "logs", "block_number", "log_index"),
    )
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), (*demands, *held))


_TRANSACTION_PLACE: Final = ("block_number", "transaction_index")


def _tagged(frame: DataFrame, kind: int, table: str, number: str, position: str) -> DataFrame:
    return frame.select(
        sf.col(number).alias("block_number"),
        sf.lit(kind).alias("kind"),
        sf.col(position).alias("position"),
        sf.struct(*CHAIN_TABLES[table].names).alias(table),
    )


def _run(rows: DataFrame, claims: Claims) -> Tally:
    found = (
        rows.repartition("block_number")
        .sortWithinPartitions(*_PLACE)
        .mapInArrow(partial(check_batches, claims=claims), from_arrow_schema(TALLIES))
    )
    return sum_of(row.asDict() for row in found.collect())


def check_batches(batches: Iterable[pa.RecordBatch], claims: Claims) -> Iterator[pa.RecordBatch]:
    """Check the blocks of one task; its rows of TALLIES come at the end."""
    tally = Tally()
    for block in blocks_of(batches):
        held = Counts(*(len(rows) for _, rows in block.tables))
        tally.add_block(check_block(block, claims), held)
    yield pa.RecordBatch.from_pylist(list(tally.rows()), schema=TALLIES)
