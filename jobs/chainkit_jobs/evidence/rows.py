"""From judged keys to findings with the served bytes, read again only for those."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit_jobs.findings import Code

COLUMNS: Final = (
    "code",
    "node_id",
    "originator_id",
    "sequence_id",
    "block_number",
    "log_index",
    "transaction_hash",
    "expected_digest",
    "served_digest",
    "served_transaction_hash",
    "signature_problem",
    "envelope",
    "detail",
)
"""Columns of findings.FINDINGS that are found; the others follow from them."""


def node_findings(judged: DataFrame, served: DataFrame, raw: DataFrame) -> DataFrame:
    """Return the findings about nodes, without ids (columns of findings.FINDINGS but three).

    ``judged`` comes from reconcile.judge, ``served`` has the columns of served.SERVED, ``raw``
    is node_id, row_index and envelope of all nodes.
    """
    return _row_findings(judged, served, raw).unionByName(_key_findings(judged))


def _row_findings(judged: DataFrame, served: DataFrame, raw: DataFrame) -> DataFrame:
    """Judge each served row of a bad key by itself: of two envelopes, one may be right."""
    flags = ("is_altered", "is_invented", "is_quarantined_served")
    is_bad = sf.col("unsigned") + sf.col("unreadable") > 0
    for flag in flags:
        is_bad = is_bad | sf.col(flag)
    keys = judged.filter(is_bad).select("node_id", "originator_id", "sequence_id", "chain", *flags)
    rows = served.select(
        "node_id",
        "row_index",
        "originator_id",
        "sequence_id",
        sf.col("digest").alias("served_digest"),
        sf.col("transaction_hash").alias("served_transaction_hash"),
        "signature_problem",
        "unreadable",
    )
    found = (
        keys.join(rows, on=["node_id", "originator_id", "sequence_id"], how="inner")
        .withColumn("code", sf.explode(_row_codes()))
        .join(raw.select("node_id", "row_index", "envelope"), ["node_id", "row_index"], "inner")
        .withColumn("detail", _row_detail())
    )
    # The same bytes served twice are one thing found, beside the duplication itself.
    return _with_chain(found).select(*COLUMNS).distinct()


def _row_codes() -> Column:
    is_readable = sf.col("unreadable").isNull()
    differs = sf.col("is_altered") & (sf.col("served_digest") != sf.col("chain.digest"))
    codes = sf.array(
        _code(Code.ENVELOPE_UNREADABLE, ~is_readable),
        _code(Code.ENVELOPE_ALTERED, is_readable & differs),
        _code(Code.ENVELOPE_INVENTED, is_readable & sf.col("is_invented")),
        _code(Code.QUARANTINED_SERVED, is_readable & sf.col("is_quarantined_served")),
        _code(Code.SIGNATURE_INVALID, sf.col("signature_problem").isNotNull()),
    )
    return sf.array_compact(codes)


def _code(code: Code, condition: Column) -> Column:
    return sf.when(condition, sf.lit(code.value))


def _row_detail() -> Column:
    is_other_transaction = sf.col("served_transaction_hash") != sf.col("chain.transaction_hash")
    altered = sf.when(is_other_transaction, "names another transaction").otherwise(
        "the right transaction, other envelope bytes"
    )
    return (
        sf.when(sf.col("code") == Code.ENVELOPE_UNREADABLE.value, sf.col("unreadable"))
        .when(sf.col("code") == Code.ENVELOPE_ALTERED.value, altered)
        .when(sf.col("code") == Code.QUARANTINED_SERVED.value, sf.col("chain.quarantine_reason"))
        .when(sf.col("code") == Code.SIGNATURE_INVALID.value, sf.col("signature_problem"))
    )


def _key_findings(judged: DataFrame) -> DataFrame:
    """Return what concerns a key as a whole, where there is no one envelope to show."""
    codes = sf.array(
        _code(Code.ENVELOPE_MISSING, sf.col("is_missing")),
        _code(Code.ENVELOPE_DUPLICATED, sf.col("served") > 1),
    )
    times = sf.concat(sf.lit("served "), sf.col("served").cast("string"), sf.lit(" times"))
    found = judged.withColumn("code", sf.explode(sf.array_compact(codes))).withColumn(
        "detail", sf.when(sf.col("code") == Code.ENVELOPE_DUPLICATED.value, times)
    )
    nothing = sf.lit(None)
    for name in ("served_digest", "served_transaction_hash", "envelope"):
        found = found.withColumn(name, nothing.cast("binary"))
    found = found.withColumn("signature_problem", nothing.cast("string"))
    return _with_chain(found).select(*COLUMNS)


def _with_chain(found: DataFrame) -> DataFrame:
    return found.withColumns(
        {
            "block_number": sf.col("chain.block_number"),
            "log_index": sf.col("chain.log_index"),
            "transaction_hash": sf.col("chain.transaction_hash"),
            "expected_digest": sf.col("chain.digest"),
        }
    )
