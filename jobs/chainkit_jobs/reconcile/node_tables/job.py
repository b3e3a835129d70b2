"""Compares all tables of nodes' exports beside their envelopes with the chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from chainkit.exports import one_line
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.chain_side import ChainSide, chain_side
from chainkit_jobs.reconcile.node_tables.columns import column_findings
from chainkit_jobs.reconcile.node_tables.cursor import cursor_findings
from chainkit_jobs.reconcile.node_tables.journal import journal_findings
from chainkit_jobs.reconcile.node_tables.quarantine import quarantine_findings
from chainkit_jobs.reconcile.node_tables.reading import (
    SCHEMAS,
    has_rows,
    missing_tables,
    table_problem,
)
from chainkit_jobs.reconcile.node_tables.registry_history import (
    history_findings,
    not_comparable,
    read_chain_updates,
)
from chainkit_jobs.reconcile.node_tables.registry_status import status_findings
from chainkit_jobs.reconcile.node_tables.retracted import retracted_findings
from chainkit_jobs.reconcile.scope import AuditScope
from chainkit_jobs.sources import Export
from chainkit_jobs.spark.frames import SPARK_ERRORS, is_read_failure

Rows = list[dict[str, Any]]
Step = Callable[[Sequence[NodeExport]], Rows]


@dataclass(frozen=True, slots=True)
class NodeTables:
    """Findings beside the envelopes, and the tables that could not be compared."""

    findings: Rows
    """Columns of finding_rows.COLUMNS."""
    not_compared: tuple[str, ...]
    """A sentence each, as in comparability.Comparability."""
    unreadable: tuple[str, ...] = ()
    """A sentence for each table that is there and cannot be read."""
    compared: dict[str, list[int]] | None = None
    """Table to the ids of the nodes whose table was compared; None where this was not requested."""


def node_table_findings(
    spark: SparkSession,
    scope: AuditScope,
    expected: DataFrame,
    found: Rows,
    misplaced: DataFrame | None = None,
) -> NodeTables:
    """Compare the other tables and columns of the scope's compared nodes with the chain.

    ``expected`` has the columns of expected.EXPECTED; one that contains only payloads with a
    ``quarantine_reason`` will do. ``found`` are the findings about these nodes' envelopes. For
    ``misplaced``, if known, see columns.column_findings. Raises StoreError where the chain export
    lacks a table.
    """
    nodes = scope.compared
    if not nodes:
        return NodeTables([], (), compared={table: [] for table in SCHEMAS})
    readable, sentences, unreadable = _readable(nodes)
    side = chain_side(spark, scope.chain, expected)
    compared: dict[str, list[int]] = {table: [] for table in SCHEMAS}
    findings = [row for node in nodes for row in cursor_findings(node)]
    steps: dict[str, Step] = {
        "envelopes": lambda those: (
            column_findings(spark, those, side, misplaced)
            + status_findings(spark, those, side, scope.administration)
        ),
        "quarantine": lambda those: quarantine_findings(spark, those, side),
        "journal": lambda those: _journal(spark, those, side, found),
    }
    for table, step in steps.items():
        if those := readable[table]:
            rows, broken = _without_broken(table, those, step)
            findings += rows
            unreadable += broken.values()
            compared[table] = [each for each in _ids(those) if each not in broken]
            if table == "envelopes" and broken:
                # A quarantine is compared with what is served.
                held = readable["quarantine"]
                readable["quarantine"] = [node for node in held if node.node.node_id not in broken]
                sentences += [
                    f"node {node.node.node_id}: quarantine, which is compared with its envelopes"
                    for node in held
                    if node.node.node_id in broken
                ]
    with_history = readable["registry_updates"]
    history, reasons = _registry_history(spark, scope.chain, with_history)
    compared["registry_updates"] = [each for each in _ids(with_history) if each not in reasons]
    sentences += reasons.values()
    return NodeTables(findings + history, tuple(sentences), tuple(unreadable), compared)


def _ids(nodes: Sequence[NodeExport]) -> list[int]:
    return [node.node.node_id for node in nodes]


def _readable(
    nodes: Sequence[NodeExport],
) -> tuple[dict[str, list[NodeExport]], list[str], list[str]]:
    """Return the nodes that have each table; sentences for missing and unreadable tables."""
    readable: dict[str, list[NodeExport]] = {table: [] for table in SCHEMAS}
    sentences, unreadable = [], []
    for node in nodes:
        subject, lacking = f"node {node.node.node_id}", missing_tables(node.export)
        if node.manifest.is_of_answers:
            sentences.append(
                f"{subject}: columns beside its envelopes, quarantine, journal and registry, which "
                "are no part of what it answers"
            )
        elif lacking:
            sentences.append(f"{subject}: {', '.join(lacking)}, which its export does not hold")
        for table in SCHEMAS:
            if table in lacking:
                continue
            # A second read of millions of rows, only to check that it works, costs too much.
            problem = table_problem(node.export, table, with_rows=table != "envelopes")
            if problem is None:
                readable[table].append(node)
            else:
                unreadable.append(_unreadable(node, table, problem))
    return readable, sentences, unreadable


def _unreadable(node: NodeExport, table: str, problem: str) -> str:
    what = "columns beside the envelopes" if table == "envelopes" else table
    return f"node {node.node.node_id}: its {what} cannot be read: {problem}"


def _without_broken(
    table: str, nodes: Sequence[NodeExport], step: Step
) -> tuple[Rows, dict[int, str]]:
    """Run a step; where Spark fails, without the nodes whose tables alone make it fail.

    Returns the step's result, and by id a sentence for each node that was left out.
    """
    try:
        return step(nodes), {}
    except SPARK_ERRORS as error:
        problems = [_problem(table, node, step) for node in nodes]
        # Where the step fails for all nodes, it need not be any node's fault.
        if not any(problems) or (all(problems) and not is_read_failure(error)):
            raise
    checked = list(zip(nodes, problems, strict=True))
    sound = [node for node, problem in checked if problem is None]
    broken = {
        node.node.node_id: _unreadable(node, table, problem) for node, problem in checked if problem
    }
    return (step(sound) if sound else []), broken


def _problem(table: str, node: NodeExport, step: Step) -> str | None:
    problem = table_problem(node.export, table)
    if problem is not None:
        return problem
    try:
        step([node])
    except SPARK_ERRORS as error:
        return f"Spark fails on it: {one_line(error)}"
    return None


def _journal(
    spark: SparkSession, nodes: Sequence[NodeExport], chain: ChainSide, found: Rows
) -> Rows:
    written = [node for node in nodes if has_rows(node.export, "journal")]
    if not written:
        return []
    return journal_findings(spark, written, chain) + retracted_findings(spark, written, found)


def _registry_history(
    spark: SparkSession, chain: Export, nodes: Sequence[NodeExport]
) -> tuple[Rows, dict[int, str]]:
    """Return findings, and by id a sentence for each node whose history was not compared."""
    findings: Rows = []
    reasons = {node.node.node_id: not_comparable(chain, node) for node in nodes}
    compared = [node for node in nodes if reasons[node.node.node_id] is None]
    if compared:
        ends = {
            node.manifest.registry["block_number"] for node in compared if node.manifest.registry
        }
        updates, hashes = read_chain_updates(spark, chain, sorted(ends))
        for node in compared:
            rows, reasons[node.node.node_id] = history_findings(chain, node, updates, hashes)
            findings += rows
    sentences = {
        node_id: f"node {node_id}: its history of the registry: {reason}"
        for node_id, reason in reasons.items()
        if reason is not None
    }
    return findings, sentences
