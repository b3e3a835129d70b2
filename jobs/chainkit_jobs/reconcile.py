"""The comparison: all sides united, grouped once, and evidence fetched for what differs.

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


def compare_keys(expected: DataFrame, served: DataFrame, node_ids: Sequence[int]) -> DataFrame:
    """Group all sides once by (originator, sequence).

    ``expected`` and ``served`` have the columns of expected.EXPECTED and served.SERVED. Returns
    per key: ``chain_count``, ``before`` (block and log of the sequence before it, null where the
    chain does not hold that), ``chain`` (a struct, null where the chain does not hold the key) and
    ``nodes``, an array of structs with, per node, its rows and the lowest and highest digest among
    them.
    """
    lanes = (
        _chain_lanes(expected)
        .unionByName(_successor_lanes(expected))
        .unionByName(_served_lanes(served))
    )
    is_chain = sf.col("side") == "chain"
    chain = sf.struct(
        "digest", "block_number", "log_index", "transaction_hash", "quarantine_reason"
    )
    place = sf.struct("block_number", "log_index")
    keys = lanes.groupBy(*_KEY).agg(
        sf.count_if(is_chain).alias("chain_count"),
        sf.max(sf.when(sf.col("side") == "follows", place)).alias("before"),
        sf.min(sf.when(is_chain, chain)).alias("chain"),
        sf.array(*[_node_lane(node_id) for node_id in node_ids]).alias("nodes"),
    )
    return keys.select(*_KEY, "chain_count", "before", "chain", "nodes")


def _chain_lanes(expected: DataFrame) -> DataFrame:
    return expected.select(
        *_KEY,
        sf.lit("chain").alias("side"),
        sf.lit(None).cast("long").alias("node_id"),
        "digest",
        "block_number",
        "log_index",
        "transaction_hash",
        "quarantine_reason",
        sf.lit(False).alias("is_unsigned"),
        sf.lit(False).alias("is_unreadable"),
    )


def _successor_lanes(expected: DataFrame) -> DataFrame:
    """Mark the key after each one on the chain: the same shuffle shows gaps and disorder."""
    empty = sf.lit(None)
    return expected.select(
        "originator_id",
        (sf.col("sequence_id") + 1).cast("decimal(20,0)").alias("sequence_id"),
        sf.lit("follows").alias("side"),
        empty.cast("long").alias("node_id"),
        empty.cast("binary").alias("digest"),
        "block_number",
        "log_index",
        empty.cast("binary").alias("transaction_hash"),
        empty.cast("string").alias("quarantine_reason"),
        sf.lit(False).alias("is_unsigned"),
        sf.lit(False).alias("is_unreadable"),
    )


def _served_lanes(served: DataFrame) -> DataFrame:
    empty = sf.lit(None)
    return served.select(
        *_KEY,
        sf.lit("node").alias("side"),
        "node_id",
        "digest",
        empty.cast("long").alias("block_number"),
        empty.cast("long").alias("log_index"),
        empty.cast("binary").alias("transaction_hash"),
        empty.cast("string").alias("quarantine_reason"),
        sf.col("signature_problem").isNotNull().alias("is_unsigned"),
        sf.col("unreadable").isNotNull().alias("is_unreadable"),
    )


def _node_lane(node_id: int) -> Column:
    # A chain's lane has no node id: without coalesce the comparison would be null, not false.
    is_node = sf.coalesce(sf.col("node_id") == node_id, sf.lit(False))
    digest = sf.when(is_node, sf.col("digest"))
    return sf.struct(
        sf.lit(node_id).cast("long").alias("node_id"),
        sf.count_if(is_node & ~sf.col("is_unreadable")).alias("served"),
        sf.count_if(is_node & sf.col("is_unreadable")).alias("unreadable"),
        sf.count_if(is_node & sf.col("is_unsigned")).alias("unsigned"),
        sf.min(digest).alias("lowest"),
        sf.max(digest).alias("highest"),
    )


def judge(keys: DataFrame, nodes: Sequence[ComparedNode]) -> DataFrame:
    """Judge each key for each node, by what the node was bound to serve.

    Returns per (originator, sequence, node): ``chain``, the counts, and the flags is_required,
    is_known (the chain holds it, once), is_missing, is_altered, is_invented,
    is_quarantined_served, is_matched, and is_outside (served, but this chain export cannot
    tell: it lies before its first payload or after its last, in a gap, or is held twice).
    """
    lane = sf.explode("nodes").alias("lane")
    rows = keys.select(*_KEY, "chain_count", "chain", lane).select(
        *_KEY, "chain_count", "chain", "lane.*"
    )
    bounds = sf.create_map(*[part for node in nodes for part in _bounds(node)])
    rows = rows.withColumn("bound", bounds[sf.col("node_id")])
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
    judged = rows.select(
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
    return judged


def _bounds(node: ComparedNode) -> tuple[Column, Column]:
    # An integer goes to Java as a long, which does not hold every uint64.
    highest = None if node.highest_sequence is None else Decimal(node.highest_sequence)
    bound = sf.struct(
        sf.lit(node.first_block).cast("long").alias("first"),
        sf.lit(node.last_block).cast("long").alias("last"),
        sf.lit(highest).cast("decimal(20,0)").alias("highest_sequence"),
    )
    return sf.lit(node.node_id).cast("long"), bound


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
