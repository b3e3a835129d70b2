"""Everything compared by Spark: for contracts that are not our own.

Screening knows one sequence, that of our own contracts. Other contracts count for each originator,
or give out sequence ids with gaps and in any order (docs/adr/0050).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit_jobs.counters import Counted, counters_of
from chainkit_jobs.reconcile.chain_findings import SequenceBounds, chain_findings
from chainkit_jobs.reconcile.chain_keys import chain_keys
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.doubtful import compare_by_spark
from chainkit_jobs.reconcile.expected import check_decoded, expected_envelopes, without_left_out
from chainkit_jobs.reconcile.key_comparison import ComparedNode, GivenOut
from chainkit_jobs.reconcile.row_comparison import Comparison, Terms
from chainkit_jobs.reconcile.scope import AuditScope
from chainkit_jobs.reconcile.served import served_envelopes
from chainkit_jobs.sources import read_blocks, read_logs, read_raw_envelopes
from chainkit_jobs.spark.frames import kept, rows_of

Row = dict[str, Any]

_NO_COUNTER = Counted(None, None)


@dataclass(frozen=True, slots=True)
class OriginatorPayloads:
    """The payloads of an originator that a chain export contains."""

    count: int
    quarantined: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Whole:
    """The comparison of all payloads of a chain export with all that nodes serve."""

    payloads: Mapping[int, OriginatorPayloads]
    """By originator id; none for one without payloads."""
    left_out: int
    """Payloads under sparse ids that do not count: see expected.without_left_out."""
    comparison: Comparison
    findings: list[Row]
    """Findings about the chain export itself."""


def compare_whole(spark: SparkSession, scope: AuditScope) -> Whole:
    """Compare the nodes of a scope. Raises MalformedLog for a log that is no payload."""
    logs, blocks = read_logs(spark, scope.chain), read_blocks(spark, scope.chain)
    with kept(expected_envelopes(logs, blocks, scope.contracts)) as decoded:
        malformed = decoded.filter(sf.col("malformed").isNotNull())
        check_decoded(rows_of(malformed.orderBy("block_number", "log_index").limit(1)))
        counting = without_left_out(decoded, scope.sparse)
        payloads = _payloads(counting)
        left_out = decoded.count() - sum(each.count for each in payloads.values())
        return Whole(
            payloads=payloads,
            left_out=left_out,
            comparison=_compare_payloads(spark, scope, counting, payloads),
            findings=_findings(scope, counting, payloads),
        )


def _payloads(counting: DataFrame) -> dict[int, OriginatorPayloads]:
    rows = counting.groupBy("originator_id").agg(
        sf.count("*").alias("count"),
        sf.count("quarantine_reason").alias("quarantined"),
        sf.min("sequence_id").alias("first"),
        sf.max("sequence_id").alias("last"),
    )
    return {
        row["originator_id"]: OriginatorPayloads(
            row["count"], row["quarantined"], int(row["first"]), int(row["last"])
        )
        for row in rows_of(rows)
    }


def _compare_payloads(
    spark: SparkSession,
    scope: AuditScope,
    counting: DataFrame,
    payloads: Mapping[int, OriginatorPayloads],
) -> Comparison:
    if not scope.compared:
        return Comparison({}, [], [])
    given_out = _given_out(scope, payloads)
    nodes = tuple(_compared_node(scope, node, given_out) for node in scope.compared)
    keys = scope.signing_keys if scope.options.with_signatures else {}
    raw = read_raw_envelopes(spark, {node.node.node_id: node.export for node in scope.compared})
    return compare_by_spark(counting, raw, served_envelopes(raw, keys), Terms(nodes, scope.bins))


def _given_out(
    scope: AuditScope, payloads: Mapping[int, OriginatorPayloads]
) -> dict[int, GivenOut]:
    counters = counters_of(scope.chain.manifest)
    found = {}
    for originator_id in {contract.originator_id for contract in scope.contracts}:
        if originator_id in scope.sparse:
            found[originator_id] = GivenOut(None, is_whole=scope.is_whole)
            continue
        counted = counters.get(originator_id, _NO_COUNTER)
        held = payloads.get(originator_id)
        last = max(held.last if held else 0, counted.before or 0)
        found[originator_id] = GivenOut(counted.after, last)
    return found


def _compared_node(
    scope: AuditScope, node: NodeExport, given_out: Mapping[int, GivenOut]
) -> ComparedNode:
    first, last = scope.compared_blocks(node)
    answers = node.manifest.answers
    if not answers:
        return ComparedNode(node.node.node_id, first, last, given_out)
    # Nobody knows up to which block a node had followed the chain that was asked for sparse ids.
    answered_to = {each: 0 if each in scope.sparse else answers.get(each, 0) for each in given_out}
    unknown = {each: replace(given, is_whole=False) for each, given in given_out.items()}
    return ComparedNode(node.node.node_id, first, last, unknown, answered_to)


def _findings(
    scope: AuditScope, counting: DataFrame, payloads: Mapping[int, OriginatorPayloads]
) -> list[Row]:
    counters, found = counters_of(scope.chain.manifest), []
    for originator_id in sorted({each.originator_id for each in scope.contracts} - scope.sparse):
        counted, held = counters.get(originator_id, _NO_COUNTER), payloads.get(originator_id)
        bounds = SequenceBounds(
            before=counted.before,
            first=held.first if held else None,
            last=held.last if held else None,
            after=counted.after,
        )
        bounds.check(f"export {scope.chain.directory}", ("counters", "counters"))
        keys = chain_keys(counting.filter(sf.col("originator_id") == originator_id))
        found += chain_findings(keys, bounds, originator_id)
    return found
