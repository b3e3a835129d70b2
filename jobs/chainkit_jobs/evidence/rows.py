"""From judged keys to findings with the served bytes, read again only for those."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.findings import Code

_COLUMNS = (
    "code",
    "node_id",
    "originator_id",
    "sequence_id",
    "block_number",
    "transaction_hash",
    "expected_digest",
    "served_digest",
    "served_transaction_hash",
    "signature_problem",
    "envelope",
    "detail",
)


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
    return _with_chain(found).select(*_COLUMNS).distinct()


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
    return _with_chain(found).select(*_COLUMNS)


def _with_chain(found: DataFrame) -> DataFrame:
    return found.withColumns(
        {
            "block_number": sf.col("chain.block_number"),
            "transaction_hash": sf.col("chain.transaction_hash"),
            "expected_digest": sf.col("chain.digest"),
        }
    )


@dataclass(frozen=True, slots=True)
class SequenceBounds:
    """What a chain export must hold, by the contract's counter, and what it does hold."""

    before: int | None
    """The counter before its first block; None where it was not read."""
    first: int | None
    """The lowest sequence that it holds; None where it holds none, as for ``last``."""
    last: int | None
    after: int | None
    """The counter in its last block; None where it was not read."""

    def missing_at_ends(self) -> list[tuple[int, int]]:
        """Return the first and last of each run of sequences that was cut off."""
        if self.first is None or self.last is None:
            runs = [(self.before, self.after)]
        else:
            runs = [(self.before, self.first - 1), (self.last, self.after)]
        return [
            (below + 1, last)
            for below, last in runs
            if below is not None and last is not None and below < last
        ]


def chain_findings(keys: DataFrame, bounds: SequenceBounds) -> list[dict[str, Any]]:
    """Return the findings about the chain export itself: its gaps and its repetitions.

    ``keys`` comes from reconcile.compare_keys.
    """
    cut = [
        _chain_row(
            Code.CHAIN_SEQUENCE_GAP, BLOCKCHAIN_ORIGINATOR_ID, Decimal(first), _missing(first, last)
        )
        for first, last in bounds.missing_at_ends()
    ]
    if bounds.first is None or bounds.last is None:
        return cut
    return cut + _findings_between(keys, bounds.first, bounds.last)


def _findings_between(keys: DataFrame, first: int, last: int) -> list[dict[str, Any]]:
    is_absent = sf.col("chain_count") == 0
    is_gap_start = is_absent & sf.col("follows") & (sf.col("sequence_id") < Decimal(last))
    is_gap_end = ~is_absent & ~sf.col("follows") & (sf.col("sequence_id") > Decimal(first))
    edges = keys.filter(is_gap_start | is_gap_end | (sf.col("chain_count") > 1)).orderBy(
        "originator_id", "sequence_id"
    )
    rows = edges.select("originator_id", "sequence_id", "chain_count", "follows").collect()
    starts = [row for row in rows if row["chain_count"] == 0]
    ends = [row for row in rows if row["chain_count"] > 0 and not row["follows"]]
    found = [
        _chain_row(
            Code.CHAIN_SEQUENCE_GAP,
            start["originator_id"],
            start["sequence_id"],
            _missing(int(start["sequence_id"]), int(end["sequence_id"]) - 1),
        )
        for start, end in zip(starts, ends, strict=True)
    ]
    return found + [
        _chain_row(
            Code.CHAIN_SEQUENCE_REPEATED,
            row["originator_id"],
            row["sequence_id"],
            f"held {row['chain_count']} times",
        )
        for row in rows
        if row["chain_count"] > 1
    ]


def _missing(first: int, last: int) -> str:
    return f"sequence {first}" if first == last else f"sequences {first} to {last}"


def _chain_row(code: Code, originator_id: int, sequence_id: Decimal, detail: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    return row | {
        "code": code.value,
        "originator_id": originator_id,
        "sequence_id": sequence_id,
        "detail": detail,
    }
