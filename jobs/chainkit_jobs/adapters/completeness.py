"""Checks, by each block's header, whether its transactions, receipts and logs are all there.

This finds blocks that a tool left half written. A log whose bits in the bloom are also those of
others may be missing unnoticed, and numbers may agree by malice: only the block's roots prove
completeness.

Since Amsterdam, a header counts its block's gas in another way than the receipts (EIP-7778,
EIP-8037), and no file contains the hard fork: where the gas differs, the receipts root decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.ethereum import bloom_of_logs
from chainkit_jobs.adapters.adapter import SourceTables
from chainkit_jobs.adapters.faults import Fault, FaultCode
from chainkit_jobs.adapters.places import count_faults, places
from chainkit_jobs.adapters.receipts_roots import receipts_roots

_NO_BLOOM = bytes(256)


def completeness_faults(source: SourceTables) -> list[Fault]:
    """Return the first fault of each block and table, counted by table.

    Rows that are repeated count once; rows that are marked are no evidence for or against their
    block.
    """
    found = _problem_rows(source)
    faults = count_faults([_faults(found)])
    if not faults:
        return []
    # A root takes all rows of its block: it is computed only where the gas does not decide.
    suspects = found.where("problem.is_gas").select("block_number").distinct()
    roots = receipts_roots(source, suspects)
    is_whole = "problem.is_gas and coalesce(made_root = receipts_root, false)"
    doubtful = found.join(roots, "block_number", "left").where(f"not ({is_whole})")
    return count_faults([_faults(doubtful)])


def _faults(found: DataFrame) -> DataFrame:
    return places(
        found,
        FaultCode.HALF_WRITTEN,
        sf.col("problem.table"),
        sf.col("problem.expected"),
        sf.col("problem.got"),
        block=sf.col("block_number"),
        file=sf.col("file"),
    )


def _problem_rows(source: SourceTables) -> DataFrame:
    """Return a row for each block and table that does not fit: the header's values, ``problem``."""
    headers = source.blocks.groupBy(sf.col("number").alias("block_number")).agg(
        sf.min("hash").alias("hash"),
        sf.max("hash").alias("other_hash"),
        sf.min("transaction_count").alias("transaction_count"),
        sf.min("gas_used").alias("gas_used"),
        sf.min("logs_bloom").alias("logs_bloom"),
        sf.min("receipts_root").alias("receipts_root"),
        sf.max("source_file").alias("file"),
    )
    # With two headers nobody knows to which one the rows belong.
    single = headers.where("hash = other_hash")
    joined = (
        single.join(_transactions(source.transactions), "block_number", "left")
        .join(_receipts(source.receipts), "block_number", "left")
        .join(_logs(source.logs), "block_number", "left")
        .join(_blooms(source.logs), "block_number", "left")
    )
    problems = sf.array_compact(sf.array(*_problems(source.receipts_are_derived)))
    return joined.withColumn("problem", sf.explode(problems)).select(
        "block_number", "file", "receipts_root", "problem"
    )


def _transactions(frame: DataFrame) -> DataFrame:
    rows = frame.groupBy("block_number", "transaction_index").agg(_is_marked())
    return rows.groupBy("block_number").agg(
        sf.count("*").alias("transactions"),
        sf.max("transaction_index").alias("last_transaction"),
        sf.max("is_marked").alias("transaction_marked"),
    )


def _receipts(frame: DataFrame) -> DataFrame:
    rows = frame.groupBy("block_number", "transaction_index").agg(
        _is_marked(),
        sf.max("gas_used").alias("gas_used"),
        sf.max("cumulative_gas_used").alias("cumulative_gas_used"),
    )
    return rows.groupBy("block_number").agg(
        sf.count("*").alias("receipts"),
        sf.sum(sf.col("gas_used").cast("decimal(20,0)")).alias("receipts_gas_used"),
        sf.max("cumulative_gas_used").alias("cumulative_gas_used"),
        sf.max("is_marked").alias("receipt_marked"),
    )


def _logs(frame: DataFrame) -> DataFrame:
    rows = frame.groupBy("block_number", "log_index").agg(_is_marked())
    return rows.groupBy("block_number").agg(
        sf.count("*").alias("logs"),
        sf.max("log_index").alias("last_log"),
        sf.max("is_marked").alias("log_marked"),
    )


def _is_marked() -> Column:
    return sf.max(sf.col("fault").isNotNull()).alias("is_marked")


def _blooms(frame: DataFrame) -> DataFrame:
    """Return the bloom of each block's logs: ``block_number``, ``bloom``."""
    rows = (
        frame.where("fault is null")
        .select("block_number", "address", "topics")
        .repartition("block_number")
        .sortWithinPartitions("block_number")
    )
    return rows.mapInArrow(_bloom_batches, "block_number long, bloom binary")


def _bloom_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Arrow's batches end anywhere: a block's logs may begin in one and end in the next.
    rows: Iterator[dict[str, Any]] = (row for batch in batches for row in batch.to_pylist())
    for number, logs in groupby(rows, key=lambda row: row["block_number"]):
        columns = [pa.array([number], pa.int64()), pa.array([bloom_of_logs(list(logs))])]
        yield pa.RecordBatch.from_arrays(columns, ["block_number", "bloom"])


def _problems(receipts_are_derived: bool) -> list[Column]:
    """Return for each table what does not fit, or null."""
    transactions, receipts, logs = _count("transactions"), _count("receipts"), _count("logs")
    gas_used = sf.coalesce("receipts_gas_used", sf.lit(0))
    last_gas_used = sf.coalesce("cumulative_gas_used", gas_used)
    gas = [
        _differs(f"gas used {kind}", sf.col("gas_used"), got, is_gas=True)
        for kind, got in (
            ("of all receipts as in the header, ", gas_used),
            ("by the last receipt as in the header, ", last_gas_used),
        )
    ]
    by_table = {
        "transactions": [
            _differs("transactions in the block: ", sf.col("transaction_count"), transactions),
            _differs(
                "the last transaction at index ", transactions - 1, sf.col("last_transaction")
            ),
            *(gas if receipts_are_derived else []),
        ],
        "receipts": []
        if receipts_are_derived
        else [_differs("one receipt per transaction: ", transactions, receipts), *gas],
        "logs": [
            _differs("the last log at index ", logs - 1, sf.col("last_log")),
            _bloom_differs(logs),
        ],
    }
    marked = {
        "transactions": sf.col("transaction_marked"),
        "receipts": sf.coalesce("receipt_marked", sf.lit(False)) | sf.col("transaction_marked"),
        "logs": sf.col("log_marked"),
    }
    return [
        sf.when(
            ~sf.coalesce(marked[table], sf.lit(False)),
            sf.coalesce(*(_named(table, problem) for problem in problems)),
        )
        for table, problems in by_table.items()
        if problems
    ]


def _count(name: str) -> Column:
    return sf.coalesce(sf.col(name), sf.lit(0))


def _differs(what: str, expected: Column, got: Column, is_gas: bool = False) -> Column:
    """Return null where both are equal or nothing is expected."""
    words = sf.concat(sf.lit(what), expected.cast("string"))
    return sf.when(expected != got, _words(words, got, is_gas))


def _bloom_differs(logs: Column) -> Column:
    bloom = sf.coalesce("bloom", sf.lit(_NO_BLOOM))
    noun = sf.when(logs == 1, " log").otherwise(" logs")
    got = sf.concat(logs.cast("string"), noun, sf.lit(" with another bloom"))
    return sf.when(
        sf.col("logs_bloom") != bloom, _words(sf.lit("the logs of the header's bloom"), got)
    )


def _words(expected: Column, got: Column, is_gas: bool = False) -> Column:
    return sf.struct(
        expected.alias("expected"), got.cast("string").alias("got"), sf.lit(is_gas).alias("is_gas")
    )


def _named(table: str, problem: Column) -> Column:
    """Add the table to a problem, which may be null."""
    return sf.when(problem.isNotNull(), problem.withField("table", sf.lit(table)))
