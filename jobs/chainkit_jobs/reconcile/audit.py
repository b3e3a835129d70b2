"""The job: reads the exports, compares them, and gathers the few rows that the report shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from chainkit.exports import Manifest
from chainkit.terminal.bar import progress_bar
from chainkit_jobs.cost.digest import CostDigest, read_digest
from chainkit_jobs.findings import complete
from chainkit_jobs.reconcile.answers import ComparedAnswers, compare_answers
from chainkit_jobs.reconcile.chain_findings import (
    SequenceBounds,
    chain_findings,
    event_findings,
    payload_findings,
)
from chainkit_jobs.reconcile.chain_keys import chain_keys
from chainkit_jobs.reconcile.doubtful import misplaced_rows
from chainkit_jobs.reconcile.expected import check_decoded, expected_envelopes
from chainkit_jobs.reconcile.inputs import Inputs
from chainkit_jobs.reconcile.node_comparison import compare_nodes, unreadable_by_spark
from chainkit_jobs.reconcile.node_tables import NodeTables, node_table_findings
from chainkit_jobs.reconcile.row_comparison import Comparison
from chainkit_jobs.reconcile.scope import DEFAULT_OPTIONS, AuditScope, Options, read_scope
from chainkit_jobs.reconcile.screening.job import Found, Screening, results_folder
from chainkit_jobs.reconcile.screening.plan import make_plan
from chainkit_jobs.reconcile.screening.results import FORBIDDEN, QUARANTINED
from chainkit_jobs.reconcile.whole import compare_whole
from chainkit_jobs.sources import read_blocks, read_logs
from chainkit_jobs.spark.frames import SPARK_ERRORS, session_in

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Payloads:
    """The payloads of the chain export, in all."""

    count: int
    quarantined: int
    first_sequence: int | None
    """None where there is none, or the contracts are not our own, as for ``last_sequence``."""
    last_sequence: int | None
    left_out: int = 0
    """Logs of contracts with sparse sequence ids that are no payloads to serve."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the outputs are made of, in a fixed order."""

    scope: AuditScope
    payloads: Payloads
    counts: dict[int, Row]
    """Node id to key_comparison.NODE_COUNTS."""
    findings: list[Row]
    """Columns of findings.FINDINGS."""
    tables_not_compared: tuple[str, ...]
    """A sentence for each table of a node that was not compared."""
    coverage: list[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    costs: CostDigest | str | None
    """The chain's costs, the reason why they are not known, or None where they were not
    requested."""
    tables_unreadable: tuple[str, ...] = ()
    """A sentence for each table or further export of a node that is there and cannot be read."""
    tables_compared: dict[str, list[int]] | None = None
    """Table to the ids of the nodes whose table was compared; None where this was not requested."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each export, and each table of one, that a fault of its own excludes."""
        return (*self.scope.comparability.reasons, *self.tables_unreadable)


def run_audit(
    context: SparkContext,
    inputs: Inputs,
    trusted_hash: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Audit:
    """Compare nodes' exports with a chain export, proved first if a block hash is trusted.

    A node whose export cannot be compared is excluded and named; the others are compared. Raises
    the errors of ``read_scope``.
    """
    scope = read_scope(context, inputs, trusted_hash, options)
    if scope.is_listed:
        return _compare_listed(context, scope)
    with results_folder(context, options.work) as work:
        return _compare(context, scope, work)


def _compare_listed(context: SparkContext, scope: AuditScope) -> Audit:
    spark = session_in(context)
    try:
        whole = compare_whole(spark, scope)
    except SPARK_ERRORS:
        unreadable = unreadable_by_spark(spark, scope.compared)
        if not unreadable:
            raise
        scope = scope.without(unreadable)
        whole = compare_whole(spark, scope)
    answers = _answers(context, scope)
    return Audit(
        scope=scope,
        payloads=Payloads(
            count=sum(each.count for each in whole.payloads.values()),
            quarantined=sum(each.quarantined for each in whole.payloads.values()),
            first_sequence=None,
            last_sequence=None,
            left_out=whole.left_out,
        ),
        counts=whole.comparison.counts,
        findings=complete(
            whole.comparison.findings + answers.findings + whole.findings,
            scope.signing_keys,
            scope.checks,
        ),
        tables_not_compared=(
            "what nodes' exports say beside their envelopes: the contracts are not chainkit's own",
        ),
        tables_unreadable=answers.unreadable,
        coverage=whole.comparison.coverage,
        costs=read_digest(spark, scope.chain) if scope.options.with_costs else None,
    )


def _compare(context: SparkContext, scope: AuditScope, work: Path | None) -> Audit:
    plan = make_plan(scope)
    with progress_bar("comparing", len(plan.units) + len(plan.leftovers)) as advance:
        screening = Screening(context, plan, work, advance)
    scope, found = scope.without(screening.unreadable), screening.found
    check_decoded(unit.malformed for unit in found.units if unit.malformed)
    payloads = _payloads(found)
    fields = ("sequence_before", "sequence_after")
    _bounds(scope.chain.manifest, payloads).check(f"export {scope.chain.directory}", fields)
    scope, comparison = _compare_readable(context, scope, screening)
    tables = _node_tables(context, scope, found, comparison)
    answers = _answers(context, scope)
    findings = comparison.findings + tables.findings + answers.findings
    findings += _about_chain(context, scope, found, payloads)
    return Audit(
        scope=scope,
        payloads=payloads,
        counts=comparison.counts,
        findings=complete(findings, scope.signing_keys, scope.checks),
        tables_not_compared=tables.not_compared,
        tables_unreadable=(*tables.unreadable, *answers.unreadable),
        tables_compared=tables.compared,
        coverage=comparison.coverage,
        costs=read_digest(session_in(context), scope.chain) if scope.options.with_costs else None,
    )


def _compare_readable(
    context: SparkContext, scope: AuditScope, screening: Screening
) -> tuple[AuditScope, Comparison]:
    """Compare the nodes; where Spark fails, without those whose files it cannot read."""
    try:
        return scope, compare_nodes(context, scope, screening)
    except SPARK_ERRORS:
        unreadable = unreadable_by_spark(session_in(context), scope.compared)
        if not unreadable:
            raise
    scope = scope.without(unreadable)
    return scope, compare_nodes(context, scope, screening)


def _node_tables(
    context: SparkContext, scope: AuditScope, found: Found, comparison: Comparison
) -> NodeTables:
    if not scope.options.with_tables:
        return NodeTables([], ("what nodes' exports say beside their envelopes: see --tables",))
    quarantined, misplaced = found.frame(QUARANTINED), misplaced_rows(found)
    return node_table_findings(
        session_in(context), scope, quarantined, comparison.findings, misplaced
    )


def _answers(context: SparkContext, scope: AuditScope) -> ComparedAnswers:
    asked_again = [node for node in scope.compared if node.others]
    if not asked_again:
        return ComparedAnswers([], ())
    keys = scope.signing_keys if scope.options.with_signatures else {}
    return compare_answers(session_in(context), asked_again, keys, scope.sparse)


def _about_chain(
    context: SparkContext, scope: AuditScope, screening: Found, payloads: Payloads
) -> list[Row]:
    keys = None
    if not screening.is_consecutive:
        spark = session_in(context)
        logs, blocks = read_logs(spark, scope.chain), read_blocks(spark, scope.chain)
        keys = chain_keys(expected_envelopes(logs, blocks, scope.contracts))
    found = chain_findings(keys, _bounds(scope.chain.manifest, payloads))
    if scope.administration is not None:
        found += event_findings(scope.administration)
        found += payload_findings(screening.rows(FORBIDDEN), scope.administration)
    return found


def _bounds(manifest: Manifest, payloads: Payloads) -> SequenceBounds:
    return SequenceBounds(
        before=manifest.sequence_before,
        first=payloads.first_sequence,
        last=payloads.last_sequence,
        after=manifest.sequence_after,
    )


def _payloads(screening: Found) -> Payloads:
    held = [unit for unit in screening.units if unit.payloads]
    return Payloads(
        count=sum(unit.payloads for unit in held),
        quarantined=sum(unit.quarantined for unit in held),
        first_sequence=min((first for first, _ in screening.ranges.values()), default=None),
        last_sequence=max((last for _, last in screening.ranges.values()), default=None),
    )
