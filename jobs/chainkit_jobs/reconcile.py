"""The comparison: what screening doubted, brought together by key and node, and judged.

What travels through the shuffle has a fixed width: digests, counts and flags. Payloads are
read again only for the few keys where a node contradicts the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID

_KEY = ("originator_id", "sequence_id")

_BOUNDS = "node_id long, bound struct<first: long, last: long, highest_sequence: decimal(20,0)>"


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """A node, and the part of the chain that its export is held against."""

    node_id: int
    first_block: int
    """A payload below it need not be served."""
    last_block: int
    """A payload above it need not be served yet."""
    highest_sequence: int | None
    """The contract's counter where the chain export ends: a higher one is invented. None where
    it was not read."""


def compare_keys(
    expected: DataFrame, served: DataFrame, nodes: Sequence[ComparedNode]
) -> DataFrame:
    """Bring all sides together, by (originator, sequence) and node.

    ``expected`` and ``served`` have the columns of expected.EXPECTED and served.SERVED. Returns per
    key and node: ``chain_count``, ``chain`` (a struct, null where the chain does not hold the key),
    the node's rows as ``served``, ``unreadable`` and ``unsigned``, the ``lowest`` and ``highest``
    digest among them, and the ``bound`` that the node is held to.
    """
    spark = expected.sparkSession
    bounds = sf.broadcast(spark.createDataFrame([_bound(node) for node in nodes], _BOUNDS))
    is_readable = sf.col("unreadable").isNull()
    rows = served.groupBy("node_id", *_KEY).agg(
        sf.count_if(is_readable).alias("served"),
        sf.count_if(~is_readable).alias("unreadable"),
        sf.count_if(sf.col("signature_problem").isNotNull()).alias("unsigned"),
        sf.min("digest").alias("lowest"),
        sf.max("digest").alias("highest"),
    )
    chain = _chain_lanes(expected).groupBy(*_KEY).agg(*_chain_aggregates())
    both = chain.crossJoin(bounds.select("node_id")).join(rows, ["node_id", *_KEY], "full_outer")
    counts = ("chain_count", "served", "unreadable", "unsigned")
    return both.fillna(0, list(counts)).join(bounds, "node_id")


def chain_keys(expected: DataFrame) -> DataFrame:
    """Group the chain's side alone, with what stands before each key.

    Returns per key ``chain_count``, ``chain`` as compare_keys does, and ``before``: block and log
    of the sequence before it, null where the chain does not hold that.
    """
    lanes = _chain_lanes(expected).unionByName(_successor_lanes(expected))
    place = sf.struct("block_number", "log_index")
    before = sf.max(sf.when(~sf.col("is_chain"), place)).alias("before")
    return lanes.groupBy(*_KEY).agg(*_chain_aggregates(), before)


def _chain_aggregates() -> tuple[Column, Column]:
    is_chain = sf.col("is_chain")
    chain = sf.struct(
        "digest", "block_number", "log_index", "transaction_hash", "quarantine_reason"
    )
    return (
        sf.count_if(is_chain).alias("chain_count"),
        sf.min(sf.when(is_chain, chain)).alias("chain"),
    )


def _chain_lanes(expected: DataFrame) -> DataFrame:
    return expected.select(
        *_KEY,
        sf.lit(True).alias("is_chain"),
        "digest",
        "block_number",
        "log_index",
        "transaction_hash",
        "quarantine_reason",
    )


def _successor_lanes(expected: DataFrame) -> DataFrame:
    """Mark the key after each one on the chain: the same shuffle shows gaps and disorder."""
    empty = sf.lit(None)
    return expected.select(
        "originator_id",
        (sf.col("sequence_id") + 1).cast("decimal(20,0)").alias("sequence_id"),
        sf.lit(False).alias("is_chain"),
        empty.cast("binary").alias("digest"),
        "block_number",
        "log_index",
        empty.cast("binary").alias("transaction_hash"),
        empty.cast("string").alias("quarantine_reason"),
    )


def judge(keys: DataFrame) -> DataFrame:
    """Judge each key for each node, by what the node was bound to serve.

    ``keys`` comes from compare_keys. Returns per (originator, sequence, node): ``chain``, the
    counts, and the flags is_required, is_known (the chain holds it, once), is_missing, is_altered,
    is_invented, is_quarantined_served, is_matched, and is_outside (served, but this chain export
    cannot tell: it lies before its first payload or after its last, in a gap, or is held twice).
    """
    is_known = sf.col("chain_count") == 1
    is_served = sf.col("served") > 0
    is_quarantined = sf.col("chain.quarantine_reason").isNotNull()
    is_required = (
        is_known
        & ~is_quarantined
        & sf.col("chain.block_number").between(sf.col("bound.first"), sf.col("bound.last"))
    )
    is_equal = (sf.col("lowest") == sf.col("chain.digest")) & (
        sf.col("highest") == sf.col("chain.digest")
    )
    is_impossible = (
        (sf.col("originator_id") != BLOCKCHAIN_ORIGINATOR_ID)
        | (sf.col("sequence_id") == 0)
        | (sf.col("sequence_id") > sf.col("bound.highest_sequence"))
    )
    is_invented = sf.coalesce(
        (sf.col("chain_count") == 0) & is_served & is_impossible, sf.lit(False)
    )
    return keys.select(
        *_KEY,
        "node_id",
        "chain",
        "served",
        "unreadable",
        "unsigned",
        is_known.alias("is_known"),
        _flag(is_required).alias("is_required"),
        _flag(is_required & ~is_served & (sf.col("unreadable") == 0)).alias("is_missing"),
        _flag(is_known & is_served & ~is_equal).alias("is_altered"),
        _flag(is_known & is_served & is_equal & is_quarantined).alias("is_quarantined_served"),
        _flag(is_known & is_served & is_equal & ~is_quarantined).alias("is_matched"),
        is_invented.alias("is_invented"),
        _flag(is_served & ~is_known & ~is_invented).alias("is_outside"),
    )


def _bound(node: ComparedNode) -> tuple[int, tuple[int, int, Decimal | None]]:
    highest = None if node.highest_sequence is None else Decimal(node.highest_sequence)
    return node.node_id, (node.first_block, node.last_block, highest)


def _flag(condition: Column) -> Column:
    return sf.coalesce(condition, sf.lit(False))


def node_counts(judged: DataFrame) -> DataFrame:
    """Count per node: envelopes the chain demands, served rows, matched and untold keys."""
    return (
        judged.groupBy("node_id")
        .agg(
            sf.count_if("is_required").alias("expected"),
            sf.sum(sf.col("served") + sf.col("unreadable")).alias("served"),
            sf.count_if("is_matched").alias("matched"),
            sf.count_if("is_outside").alias("outside"),
        )
        .select("node_id", "expected", "served", "matched", "outside")
    )
