"""ANSWERS_DIFFER: envelopes of a node that one export of it holds, and another does not.

A node may be asked by several auditors, from several addresses, and its operator may export it. It
has one log: whatever two of them hold in the sequences that both speak of must be the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.exports import one_line
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import HIGHEST_SEQUENCE, NodeExport
from chainkit_jobs.reconcile.finding_rows import finding_row
from chainkit_jobs.reconcile.inputs import shown_folder
from chainkit_jobs.reconcile.served import served_envelopes
from chainkit_jobs.sources import Export, read_raw_envelopes
from chainkit_jobs.spark.frames import SPARK_ERRORS, rows_of

LISTED: Final = 1000
"""Envelopes that are listed of two exports."""

_ROW: Final = ("node_id", "row_index")


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """The findings about all nodes with several exports."""

    findings: list[dict[str, Any]]
    """Columns of finding_rows.COLUMNS."""
    unreadable: tuple[str, ...]
    """A sentence for each export that Spark cannot read."""


def compare_answers(
    spark: SparkSession, nodes: Iterable[NodeExport], keys: Mapping[int, bytes]
) -> ComparedAnswers:
    """Compare each node's other exports with the one that is held against the chain.

    ``keys`` are the nodes' registered keys (65 bytes); without one, signatures are not checked.
    """
    findings: list[dict[str, Any]] = []
    unreadable: list[str] = []
    for node in nodes:
        for other in node.others:
            try:
                findings += _differences(spark, node, other, keys.get(node.node.node_id))
            except SPARK_ERRORS as error:
                folder = shown_folder(other.directory)
                reason = f"export {folder} cannot be read: Spark fails on it: {one_line(error)}"
                unreadable.append(f"node {node.node.node_id}: {reason}")
    return ComparedAnswers(findings, tuple(unreadable))


def _differences(
    spark: SparkSession, node: NodeExport, other: Export, key: bytes | None
) -> list[dict[str, Any]]:
    sides = {0: node.export, 1: other}
    first, last = _common(spark, sides)
    by_one = _held_by_one(read_raw_envelopes(spark, sides))
    served = served_envelopes(by_one, {} if key is None else dict.fromkeys(sides, key))
    found = (
        served.filter(sf.col("sequence_id").between(first, last))
        .join(by_one.select(*_ROW, "envelope"), list(_ROW), "inner")
        .orderBy("originator_id", "sequence_id", "node_id", "envelope")
    )
    rows = rows_of(found.limit(LISTED))
    total = found.count() if len(rows) == LISTED else len(rows)
    folders = [shown_folder(each.directory) for each in sides.values()]
    return [
        _finding(node, row, folders, total if number == 0 else 0) for number, row in enumerate(rows)
    ]


def _held_by_one(raw: DataFrame) -> DataFrame:
    """Return the envelopes of one side only, once each (columns of read_raw_envelopes)."""
    sides = raw.groupBy("envelope").agg(
        sf.min("node_id").alias("node_id"),
        sf.max("node_id").alias("last_side"),
        sf.min("row_index").alias("row_index"),
        sf.min("claimed_sequence_id").alias("claimed_sequence_id"),
    )
    return sides.filter(sf.col("node_id") == sf.col("last_side")).drop("last_side")


def _common(spark: SparkSession, sides: Mapping[int, Export]) -> tuple[Decimal, Decimal]:
    """Return the first and last sequence that both exports speak of."""
    bounds = [_bounds(spark, side, export) for side, export in sides.items()]
    return max(first for first, _ in bounds), min(last for _, last in bounds)


def _bounds(spark: SparkSession, side: int, export: Export) -> tuple[Decimal, Decimal]:
    if export.manifest.answered_to is not None:
        return Decimal(0), Decimal(export.manifest.answered_to)
    # An operator's export may begin and end with any block: its rows tell with which sequence.
    served = served_envelopes(read_raw_envelopes(spark, {side: export}), {})
    readable = served.filter(sf.col("unreadable").isNull())
    [row] = readable.agg(sf.min("sequence_id"), sf.max("sequence_id")).collect()
    return (Decimal(HIGHEST_SEQUENCE), Decimal(0)) if row[0] is None else (row[0], row[1])


def _finding(
    node: NodeExport, row: Mapping[str, Any], folders: list[str], total: int
) -> dict[str, Any]:
    holder, lacking = folders if row["node_id"] == 0 else folders[::-1]
    rest = f" (the first of {total} such; {LISTED} are listed)" if total > LISTED else ""
    detail = f"in {holder}, and not in {lacking}{rest}"
    same = ("originator_id", "sequence_id", "signature_problem", "envelope")
    return finding_row(Code.ANSWERS_DIFFER, detail, node_id=node.node.node_id) | {
        "served_digest": row["digest"],
        "served_transaction_hash": row["transaction_hash"],
        **{name: row[name] for name in same},
    }
