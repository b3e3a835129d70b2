"""ANSWERS_DIFFER: envelopes of a node that one export of it holds, and another does not.

A node may be asked by several auditors, from several addresses, and its operator may export it. The
node has one log: two exports must hold the same bytes in all sequences that both cover. Payloads
with sparse ids may come below others later: of sparse ids, both must hold the sequence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.exports import one_line
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
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
    spark: SparkSession,
    nodes: Iterable[NodeExport],
    keys: Mapping[int, bytes],
    sparse: Collection[int] = (),
) -> ComparedAnswers:
    """Compare each node's other exports with the one that is held against the chain.

    ``keys`` are the nodes' registered keys (65 bytes); without one, signatures are not checked.
    ``sparse`` are the originators whose ids are so.
    """
    findings: list[dict[str, Any]] = []
    unreadable: list[str] = []
    for node in nodes:
        for other in node.others:
            try:
                findings += _differences(spark, node, other, keys.get(node.node.node_id), sparse)
            except SPARK_ERRORS as error:
                folder = shown_folder(other.directory)
                reason = f"export {folder} cannot be read: Spark fails on it: {one_line(error)}"
                unreadable.append(f"node {node.node.node_id}: {reason}")
    return ComparedAnswers(findings, tuple(unreadable))


def _differences(
    spark: SparkSession,
    node: NodeExport,
    other: Export,
    key: bytes | None,
    sparse: Collection[int],
) -> list[dict[str, Any]]:
    sides = {0: node.export, 1: other}
    by_one = _held_by_one(read_raw_envelopes(spark, sides))
    served = served_envelopes(by_one, {} if key is None else dict.fromkeys(sides, key))
    found = (
        _spoken_of(spark, sides, served, sparse)
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


def _spoken_of(
    spark: SparkSession, sides: Mapping[int, Export], served: DataFrame, sparse: Collection[int]
) -> DataFrame:
    """Return those rows of served.SERVED whose sequence both exports speak of."""
    spoken = [_bounds(spark, side, export) for side, export in sides.items()]
    originator_id, sequence_id = sf.col("originator_id"), sf.col("sequence_id")
    is_common, both_tell = sf.lit(False), spoken[0].keys() & spoken[1].keys()
    # The common bounds of all originators are for answers that contain no other bounds.
    for each in both_tell - {None} or both_tell:
        (first, last), (other_first, other_last) = (side[each] for side in spoken)
        within = sequence_id.between(max(first, other_first), min(last, other_last))
        is_common |= within & (sf.lit(True) if each is None else originator_id == each)
    common, is_sparse = served.filter(is_common), originator_id.isin(list(sparse))
    if not sparse:
        return common
    keys = ["originator_id", "sequence_id"]
    both = common.groupBy(keys).agg(sf.count_distinct("node_id").alias("sides"))
    held = common.join(both.filter(sf.col("sides") == len(sides)), keys, "left_semi")
    return common.filter(~is_sparse).unionByName(held.filter(is_sparse))


Bounds = Mapping[int | None, tuple[Decimal, Decimal]]
"""First and last sequence by originator id; by None, those of all originators."""


def _bounds(spark: SparkSession, side: int, export: Export) -> Bounds:
    manifest = export.manifest
    if manifest.answered_to is not None:
        return {None: (Decimal(0), Decimal(manifest.answered_to))}
    if manifest.answered is not None:
        return {each: (Decimal(0), Decimal(last)) for each, last in manifest.answers.items()}
    # An operator's export may begin and end with any block: its rows show with which sequence.
    served = served_envelopes(read_raw_envelopes(spark, {side: export}), {})
    readable = served.filter(sf.col("unreadable").isNull())
    ends = (sf.min("sequence_id").alias("first"), sf.max("sequence_id").alias("last"))
    rows = rows_of(readable.groupBy("originator_id").agg(*ends))
    found: dict[int | None, tuple[Decimal, Decimal]] = {
        row["originator_id"]: (row["first"], row["last"]) for row in rows
    }
    if found:
        firsts, lasts = zip(*found.values(), strict=True)
        found[None] = (min(firsts), max(lasts))
    return found


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
