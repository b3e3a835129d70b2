"""Compares nodes with the chain: screened first, then row by row where something was doubtful.

The driver compares few rows, Spark compares many: by the same rules, to the same findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from chainkit.exports import one_line
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.coverage import screened_coverage, summed
from chainkit_jobs.reconcile.doubtful import DoubtfulRows, InDriver, InSpark, compare_by_spark
from chainkit_jobs.reconcile.expected import expected_envelopes
from chainkit_jobs.reconcile.key_comparison import ComparedNode, GivenOut
from chainkit_jobs.reconcile.row_comparison import Comparison, Terms
from chainkit_jobs.reconcile.scope import AuditScope
from chainkit_jobs.reconcile.screening.job import Screening
from chainkit_jobs.reconcile.screening.results import NodeCount, UnitSummary
from chainkit_jobs.reconcile.served import served_envelopes
from chainkit_jobs.sources import read_blocks, read_logs, read_raw_envelopes
from chainkit_jobs.spark.frames import read_problem, session_in

Row = dict[str, Any]


def compare_nodes(context: SparkContext, scope: AuditScope, screening: Screening) -> Comparison:
    """Compare what screening doubted, and add the counts of what screening found right.

    Where the chain export's own sequence is broken, the expected payloads depend on the whole
    sequence: then everything is compared.
    """
    if not scope.compared:
        return Comparison({}, [], [])
    bins, found = scope.bins, screening.found
    last = max((last for _, last in found.ranges.values()), default=0)
    terms = Terms(tuple(_compared_node(scope, node, last) for node in scope.compared), bins)
    keys = scope.signing_keys if scope.options.with_signatures else {}
    if not found.is_consecutive:
        return _compare_everything(session_in(context), scope, keys, terms)
    doubtful: DoubtfulRows = (InDriver if found.results.are_few() else InSpark)(found, keys)
    misplaced: list[int] = []
    if not screening.is_complete and found.ranges:
        lowest = min(first for first, _ in found.ranges.values())
        highest = max(last for _, last in found.ranges.values())
        misplaced = doubtful.misplaced_sequences(lowest, highest)
    again = screening.recall(misplaced)
    comparison = doubtful.compare(again, terms)
    return Comparison(
        counts=_counts(screening, again.units, comparison.counts),
        coverage=summed(
            [screened_coverage(found.units, bins), comparison.coverage],
            bins,
            without=screened_coverage(again.units, bins),
        ),
        findings=comparison.findings,
    )


def unreadable_by_spark(spark: SparkSession, nodes: Iterable[NodeExport]) -> dict[int, str]:
    """Return by node id why Spark cannot read the node's envelopes, though Arrow could."""
    found = {}
    for node in nodes:
        node_id = node.node.node_id
        problem = read_problem(read_raw_envelopes(spark, {node_id: node.export}))
        if problem is not None:
            found[node_id] = f"Spark fails on it: {one_line(problem)}"
    return found


def _compare_everything(
    spark: SparkSession, scope: AuditScope, keys: Mapping[int, bytes], terms: Terms
) -> Comparison:
    logs, blocks = read_logs(spark, scope.chain), read_blocks(spark, scope.chain)
    expected = expected_envelopes(logs, blocks, scope.contracts)
    raw = read_raw_envelopes(spark, {node.node.node_id: node.export for node in scope.compared})
    return compare_by_spark(expected, raw, served_envelopes(raw, keys), terms)


def _counts(
    screening: Screening, again: Sequence[UnitSummary], comparison: Mapping[int, Row]
) -> dict[int, Row]:
    found = {}
    for node_id, own in comparison.items():
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


def _compared_node(scope: AuditScope, node: NodeExport, last_sequence: int) -> ComparedNode:
    first, last = scope.compared_blocks(node)
    manifest = scope.chain.manifest
    known_to = max(last_sequence, manifest.sequence_before or 0)
    given_out = {BLOCKCHAIN_ORIGINATOR_ID: GivenOut(manifest.sequence_after, known_to)}
    answered_to = {BLOCKCHAIN_ORIGINATOR_ID: node.highest_required}
    return ComparedNode(node.node.node_id, first, last, given_out, answered_to)
