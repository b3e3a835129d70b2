"""Compares rows, key by key: by the same rules in the driver and in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.finding_rows import COLUMNS, key_findings, row_findings
from chainkit_jobs.reconcile.key_comparison import (
    ComparedNode,
    Key,
    KeyComparison,
    KeyCounts,
    begin,
    covered,
    node_counts,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of all compared nodes."""

    counts: dict[int, Row]
    """Node id to key_comparison.NODE_COUNTS."""
    coverage: list[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    findings: list[Row]
    """Columns of finding_rows.COLUMNS."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The nodes for which keys are compared, and the bins in which comparisons are counted."""

    nodes: tuple[ComparedNode, ...]
    bins: Bins


def key_of(row: Mapping[str, Any]) -> Key:
    """Return the key of a row: the chain's or a node's."""
    return row["originator_id"], row["sequence_id"]


def compare_rows(
    rows: Iterable[Mapping[str, Any]], terms: Terms, tally: KeyCounts
) -> Iterator[Row]:
    """Compare rows that are ordered by key, the chain's first: the rows name no node.

    A node's rows are not gathered first: it may serve any number under one key.
    """
    nodes = {node.node_id: node for node in terms.nodes}
    for key, group in groupby(rows, key_of):
        chain: list[Mapping[str, Any]] = []
        comparisons: dict[int, KeyComparison] = {}
        for row in group:
            node_id = row.get("node_id")
            if node_id is None:
                chain.append(row)
                continue
            if node_id not in comparisons:
                comparisons[node_id] = begin(key, chain, nodes[node_id])
            comparisons[node_id].see(row)
            yield from row_findings(comparisons[node_id], row)
        for node_id in nodes if chain else ():
            if node_id not in comparisons:
                comparisons[node_id] = begin(key, chain, nodes[node_id])
        for comparison in comparisons.values():
            tally.add(comparison, terms.bins)
            yield from key_findings(comparison)


def gather(tallies: Sequence[KeyCounts], found: Iterable[Row], terms: Terms) -> Comparison:
    """Put together what all tasks counted and found."""
    # The same bytes served twice are one finding, besides the duplication itself.
    distinct = {tuple(row[name] for name in COLUMNS) for row in found}
    return Comparison(
        counts={
            node_id: {"node_id": node_id, **counts}
            for node_id, counts in node_counts(tallies, terms.nodes).items()
        },
        coverage=covered(tallies, terms.bins),
        findings=[dict(zip(COLUMNS, values, strict=True)) for values in distinct],
    )
