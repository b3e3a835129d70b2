"""A node's quarantine, against the payloads that are malformed on the chain."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, TopicKind
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.expected import PayloadContracts
from chainkit_jobs.reconcile.node_tables.chain_side import LOG, ChainSide
from chainkit_jobs.reconcile.node_tables.reading import read_tables
from chainkit_jobs.reconcile.node_tables.rows import listed

_KEY: Final = ("originator_id", "sequence_id")
_COMPARED: Final = (
    "block_number",
    "block_hash",
    "transaction_hash",
    "transaction_index",
    "log_index",
    "posted_topic",
    "payload_sha256",
)
"""Columns of places.payload_places that a row of the quarantine also has."""


def quarantine_findings(
    spark: SparkSession, nodes: Sequence[NodeExport], chain: ChainSide
) -> list[dict[str, Any]]:
    """Compare the quarantine of each node within the blocks that both exports cover."""
    held = _held(read_tables(spark, nodes, "quarantine"), chain.contracts).persist()
    try:
        wrong = _contradictions(held, chain)
        missing = _missing(spark, nodes, held, chain)
        return listed(wrong.unionByName(_repeated(held)).unionByName(missing))
    finally:
        held.unpersist()


def _held(rows: DataFrame, contracts: PayloadContracts) -> DataFrame:
    """Return the nodes' rows with what a place on the chain is compared by, as ``held``."""
    kinds = {
        contracts.group_messages: TopicKind.GROUP_MESSAGE,
        contracts.identity_updates: TopicKind.IDENTITY_UPDATE,
    }
    kind = sf.lit(None).cast("binary")
    for address, value in kinds.items():
        is_its = sf.col("contract") == sf.lit(address)
        kind = sf.when(is_its, sf.lit(value.topic(b""))).otherwise(kind)
    entries = rows.withColumns(
        {"posted_topic": sf.concat(kind, "identifier"), "payload_sha256": sf.sha2("payload", 256)}
    )
    return entries.select("node_id", *_KEY, sf.struct(*_COMPARED, "reason").alias("held"))


def _contradictions(held: DataFrame, chain: ChainSide) -> DataFrame:
    places = chain.places.select(*_KEY, sf.struct(*_COMPARED).alias("place"))
    reasons = chain.quarantined.select(*LOG, "digest", "quarantine_reason")
    is_its_log = [sf.equal_null(f"place.{name}", reasons[name]) for name in LOG]
    found = held.join(places, list(_KEY), "left").join(reasons, is_its_log, "left").drop(*LOG)
    differing = sf.array_compact(sf.array(*map(_difference, _COMPARED)))
    # Either place will do of a log that the chain export repeats.
    best = (
        found.withColumn("differing", sf.array_join(differing, ", "))
        .groupBy("node_id", *_KEY, "held")
        .agg(sf.min(sf.struct("differing", "place", "digest", "quarantine_reason")).alias("best"))
        .select("node_id", *_KEY, "held", "best.*")
    )
    kind = _kind(chain.manifest.sequence_after)
    is_reason = sf.col("quarantine_reason").isNotNull() & (sf.col("differing") == "")
    code = sf.when(is_reason, Code.QUARANTINE_REASON_DIFFERS.value).otherwise(
        Code.QUARANTINE_CONTRADICTS.value
    )
    log = ("block_number", "log_index", "transaction_hash")
    return _as_findings(
        best.select(
            "node_id",
            *_KEY,
            "digest",
            *(sf.col(f"place.{name}").alias(name) for name in log),
            code.alias("code"),
            kind.alias("kind"),
            kind.alias("detail"),
        ).filter(sf.col("kind").isNotNull())
    )


def _difference(name: str) -> Column:
    is_other = sf.col("place").isNotNull() & ~sf.equal_null(f"place.{name}", f"held.{name}")
    return sf.when(is_other, sf.lit(name.removesuffix("_sha256").removeprefix("posted_")))


def _kind(counter: int | None) -> Column:
    """Return a row's fault, or null where it has none, or the chain export cannot decide."""
    highest = sf.lit(None if counter is None else Decimal(counter)).cast("decimal(20,0)")
    is_impossible = reduce(
        or_,
        (
            sf.col("originator_id") != BLOCKCHAIN_ORIGINATOR_ID,
            sf.col("sequence_id") < 1,
            sf.coalesce(sf.col("sequence_id") > highest, sf.lit(False)),
        ),
    )
    is_absent = sf.col("place").isNull()
    is_valid = sf.col("quarantine_reason").isNull()
    is_same = sf.col("differing") == ""
    others = sf.concat(sf.lit("other than on the chain: "), "differing")
    reasons = sf.concat(
        sf.lit("expected "), "quarantine_reason", sf.lit(", got "), sf.col("held.reason")
    )
    return (
        sf.when(is_absent & is_impossible, "the contracts never gave out this sequence")
        .when(is_absent, sf.lit(None).cast("string"))
        .when(is_valid & is_same, "the payload is valid")
        .when(is_valid, sf.concat(sf.lit("this sequence's payload is valid; "), others))
        .when(~is_same, others)
        .when(sf.col("quarantine_reason") != sf.col("held.reason"), reasons)
    )


def _repeated(held: DataFrame) -> DataFrame:
    """Return sequences that a node keeps more than once."""
    repeated = held.groupBy("node_id", *_KEY).agg(sf.count("*").alias("times"))
    nothing = {name: sf.lit(None).cast("long") for name in LOG} | {
        name: sf.lit(None).cast("binary") for name in ("transaction_hash", "digest")
    }
    words = {
        "code": sf.lit(Code.QUARANTINE_CONTRADICTS.value),
        "kind": sf.lit("repeated"),
        "detail": sf.format_string("this sequence is held %d times", "times"),
    }
    return _as_findings(repeated.filter("times > 1").withColumns(nothing | words))


def _missing(
    spark: SparkSession, nodes: Sequence[NodeExport], held: DataFrame, chain: ChainSide
) -> DataFrame:
    """Return what is malformed on the chain, and neither in a node's quarantine nor served."""
    first = chain.manifest.from_block
    ranges = [
        (node.node.node_id, max(node.manifest.from_block, first), node.manifest.to_block)
        for node in nodes
    ]
    bounds = spark.createDataFrame(ranges, "node_id long, first long, last long")
    demanded = chain.quarantined.join(
        sf.broadcast(bounds), sf.col("block_number").between(sf.col("first"), sf.col("last"))
    )
    key = ["node_id", *_KEY]
    absent = demanded.join(held, key, "left_anti")
    # The other way round, all that a node serves would be shuffled.
    served = read_tables(spark, nodes, "envelopes", _KEY).join(
        absent.select(*key), key, "left_semi"
    )
    words = {
        "code": sf.lit(Code.QUARANTINE_MISSING.value),
        "kind": sf.lit("missing"),
        "detail": sf.col("quarantine_reason"),
    }
    return _as_findings(absent.join(served, key, "left_anti").withColumns(words))


def _as_findings(found: DataFrame) -> DataFrame:
    log = ("block_number", "log_index", "transaction_hash")
    digest = sf.col("digest").alias("expected_digest")
    return found.select("code", "node_id", *_KEY, *log, digest, "detail", "kind")
