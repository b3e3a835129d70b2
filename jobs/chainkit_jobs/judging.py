"""Nodes against the chain: screened first, then judged where something was doubtful."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.comparison import NodeExport
from chainkit_jobs.coverage import Bins, coverage, screened_coverage, summed
from chainkit_jobs.evidence.rows import node_findings
from chainkit_jobs.expected import PayloadContracts, expected_envelopes
from chainkit_jobs.frames import kept, rows_of
from chainkit_jobs.reconcile import ComparedNode, compare_keys, judge, node_counts
from chainkit_jobs.screening.job import Found, Screening
from chainkit_jobs.screening.results import NodeCount, UnitSummary
from chainkit_jobs.served import served_envelopes
from chainkit_jobs.sources import Export, read_blocks, read_logs, read_raw_envelopes

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said of all nodes that were compared."""

    counts: dict[int, Row]
    """Node id to expected, served, matched and outside."""
    coverage: list[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    findings: list[Row]
    """Columns of evidence.rows.COLUMNS."""


def judge_nodes(
    spark: SparkSession,
    chain: Export,
    contracts: PayloadContracts,
    nodes: Sequence[NodeExport],
    screening: Screening,
    *,
    with_signatures: bool,
) -> Judged:
    """Judge what screening doubted, and count it together with what it found right.

    Where the chain export's own sequence is broken, what is right depends on all of it: then
    everything is judged.
    """
    if not nodes:
        return Judged({}, [], [])
    bins = Bins.over(chain.manifest.from_block, chain.manifest.to_block)
    compared = [_compared_node(chain, node) for node in nodes]
    keys = {node.node.node_id: node.node.signing_key for node in nodes}
    if not screening.found.is_consecutive:
        expected = expected_envelopes(read_logs(spark, chain), read_blocks(spark, chain), contracts)
        raw = read_raw_envelopes(spark, {node.node.node_id: node.export for node in nodes})
        with kept(served_envelopes(raw, keys, with_signatures=with_signatures)) as served:
            whole = _judged(compared, expected, raw, served, bins)
        return replace(whole, coverage=summed([whole.coverage], bins))
    found = screening.found
    if screening.is_clean:
        covered = screened_coverage(found.units, bins)
        nothing = {node.node_id: _no_counts(node.node_id) for node in compared}
        return Judged(_counts(screening, (), nothing), covered, [])
    with kept(served_envelopes(found.raw, keys, with_signatures=with_signatures)) as doubtful:
        elsewhere = [] if screening.is_complete else _borne_elsewhere(doubtful, found)
        again = screening.recall(elsewhere)
        # What is recalled was found signed.
        recalled = served_envelopes(again.raw, keys, with_signatures=False)
        with kept(doubtful.unionByName(recalled)) as served:
            expected = found.expected.unionByName(again.expected)
            judged = _judged(compared, expected, found.raw.unionByName(again.raw), served, bins)
    return Judged(
        counts=_counts(screening, again.units, judged.counts),
        coverage=summed(
            [screened_coverage(found.units, bins), judged.coverage],
            bins,
            without=screened_coverage(again.units, bins),
        ),
        findings=judged.findings,
    )


def misplaced_rows(found: Found) -> DataFrame:
    """Return the rows that claim another sequence than they bear.

    Columns: ``node_id`` and ``claimed_sequence_id``.
    """
    borne = served_envelopes(found.raw, {}, with_signatures=False)
    rows = found.raw.select("node_id", "row_index", "claimed_sequence_id").join(
        borne.select("node_id", "row_index", "sequence_id"), ["node_id", "row_index"]
    )
    return rows.filter(sf.col("claimed_sequence_id") != sf.col("sequence_id")).select(
        "node_id", "claimed_sequence_id"
    )


def _judged(
    nodes: Sequence[ComparedNode],
    expected: DataFrame,
    raw: DataFrame,
    served: DataFrame,
    bins: Bins,
) -> Judged:
    with kept(judge(compare_keys(expected, served, nodes))) as judged:
        counts = {row["node_id"]: row for row in rows_of(node_counts(judged))}
        covered = rows_of(coverage(judged, bins).orderBy("node_id", "first_block"))
        found = rows_of(node_findings(judged, served, raw))
    # Where neither the chain nor any node holds an envelope, there is no key to count.
    empty = {node.node_id: _no_counts(node.node_id) for node in nodes}
    return Judged(empty | counts, covered, found)


def _borne_elsewhere(served: DataFrame, found: Found) -> list[int]:
    """Return the sequences that rows bear which were doubtful only under what they claim.

    One that cannot be read bears what it claims, which another unit may have found right.
    """
    if not found.ranges:
        return []
    lowest = min(first for first, _ in found.ranges.values())
    highest = max(last for _, last in found.ranges.values())
    is_held = sf.col("sequence_id").between(Decimal(lowest), Decimal(highest))
    is_ours = sf.col("originator_id") == BLOCKCHAIN_ORIGINATOR_ID
    borne = served.filter(is_ours & is_held)
    late = borne.select("sequence_id").distinct()
    rows = late.join(found.expected.select("sequence_id"), "sequence_id", "left_anti").toArrow()
    return [int(sequence_id) for sequence_id in rows["sequence_id"].to_pylist()]


def _counts(
    screening: Screening, again: Sequence[UnitSummary], judged: Mapping[int, Row]
) -> dict[int, Row]:
    found = {}
    for node_id, own in judged.items():
        right = [unit.nodes[node_id] for unit in screening.found.units]
        recalled = [unit.nodes[node_id] for unit in again]
        found[node_id] = own | {
            "served": screening.rows[node_id],
            "expected": own["expected"] + _total(right, "required") - _total(recalled, "required"),
            "matched": own["matched"] + _total(right, "matched") - _total(recalled, "matched"),
        }
    return found


def _total(counts: Iterable[NodeCount], name: str) -> int:
    return sum(sum(getattr(count, name).values()) for count in counts)


def _no_counts(node_id: int) -> Row:
    return {"node_id": node_id} | dict.fromkeys(("expected", "served", "matched", "outside"), 0)


def _compared_node(chain: Export, node: NodeExport) -> ComparedNode:
    first, last = compared_blocks(chain, node)
    return ComparedNode(node.node.node_id, first, last, chain.manifest.sequence_after)


def compared_blocks(chain: Export, node: NodeExport) -> tuple[int, int]:
    """Return the first and last block that both exports speak of."""
    own, whole = node.manifest, chain.manifest
    return max(own.from_block, whole.from_block), min(own.to_block, whole.to_block)
