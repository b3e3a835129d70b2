"""The chain's own sequence, key by key: for an export whose payloads do not follow each other."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

_KEY: Final = ("originator_id", "sequence_id")


def chain_keys(expected: DataFrame) -> DataFrame:
    """Group the chain's side by (originator, sequence), with the log before each key.

    ``expected`` has the columns of expected.EXPECTED. Returns per key ``chain_count``; ``chain``, a
    struct of block_number, log_index and transaction_hash, null where the chain does not hold the
    key; and ``before``: block and log of the sequence before it, null where the chain does not hold
    that sequence.
    """
    lanes = _chain_lanes(expected).unionByName(_successor_lanes(expected))
    is_chain = sf.col("is_chain")
    place = sf.struct("block_number", "log_index")
    chain = sf.struct("digest", "block_number", "log_index", "transaction_hash")
    return lanes.groupBy(*_KEY).agg(
        sf.count_if(is_chain).alias("chain_count"),
        sf.min(sf.when(is_chain, chain)).alias("chain"),
        sf.max(sf.when(~is_chain, place)).alias("before"),
    )


def _chain_lanes(expected: DataFrame) -> DataFrame:
    return expected.select(
        *_KEY,
        sf.lit(True).alias("is_chain"),
        "digest",
        "block_number",
        "log_index",
        "transaction_hash",
    )


def _successor_lanes(expected: DataFrame) -> DataFrame:
    """Mark the key after each one on the chain: the same shuffle shows gaps and disorder."""
    empty = sf.lit(None).cast("binary")
    return expected.select(
        "originator_id",
        (sf.col("sequence_id") + 1).cast("decimal(20,0)").alias("sequence_id"),
        sf.lit(False).alias("is_chain"),
        empty.alias("digest"),
        "block_number",
        "log_index",
        empty.alias("transaction_hash"),
    )
