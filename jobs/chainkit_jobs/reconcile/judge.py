"""Nodes against the chain: screened first, then judged where something was doubtful.

What is little is judged in the driver, what is not in Spark: by the same rules, to the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import chain as chained
from itertools import groupby, islice
from typing import Any, Final, Protocol

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID
from chainkit_jobs.findings import FINDINGS
from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.coverage import screened_coverage, summed
from chainkit_jobs.reconcile.expected import PayloadContracts, expected_envelopes
from chainkit_jobs.reconcile.finding_rows import COLUMNS, key_findings, row_findings
from chainkit_jobs.reconcile.screening.job import Found, Screening
from chainkit_jobs.reconcile.screening.results import CHAIN, SERVED, NodeCount, UnitSummary
from chainkit_jobs.reconcile.served import decode_row, served_envelopes
from chainkit_jobs.reconcile.verdict import (
    ComparedNode,
    Key,
    Tally,
    Verdict,
    begin,
    covered,
    node_counts,
    read_tally,
)
from chainkit_jobs.sources import Export, read_blocks, read_logs, read_raw_envelopes
from chainkit_jobs.spark.frames import kept, rows_of, session_in

Row = dict[str, Any]

_BATCH_ROWS: Final = 1_000
_KEY: Final = ("originator_id", "sequence_id")
_CHAIN_LANES: Final = (
    *_KEY,
    "digest",
    "transaction_hash",
    "block_number",
    "log_index",
    "quarantine_reason",
)
_SERVED_LANES: Final = (
    *_KEY,
    "digest",
    "transaction_hash",
    "node_id",
    "row_index",
    "signature_problem",
    "unreadable",
)
_TALLY: Final = "tally"
_JUDGED: Final = pa.schema(
    [
        *(FINDINGS.field(name).with_nullable(True) for name in COLUMNS if name != "envelope"),
        ("row_index", pa.int64()),
        (_TALLY, pa.string()),
    ]
)
"""Findings of evidence.rows; of a task the last one is its Tally, with nothing beside."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of all nodes that were compared."""

    counts: dict[int, Row]
    """Node id to expected, served, matched and outside."""
    coverage: list[Row]
    """Columns of coverage.COVERAGE, by node and block."""
    findings: list[Row]
    """Columns of evidence.rows.COLUMNS."""


@dataclass(frozen=True, slots=True)
class _Terms:
    """The reference that all keys are judged by."""

    nodes: tuple[ComparedNode, ...]
    bins: Bins


def judge_nodes(
    context: SparkContext,
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
    terms = _Terms(tuple(_compared_node(chain, node) for node in nodes), bins)
    own = {node.node.node_id: node.node.signing_key for node in nodes}
    keys = own if with_signatures else {}
    found = screening.found
    if not found.is_consecutive:
        spark = session_in(context)
        expected = expected_envelopes(read_logs(spark, chain), read_blocks(spark, chain), contracts)
        raw = read_raw_envelopes(spark, {node.node.node_id: node.export for node in nodes})
        return _judged_by_spark(expected, raw, served_envelopes(raw, keys), terms)
    doubtful: _Doubtful = (_Here if found.results.are_few() else _InSpark)(found, keys)
    elsewhere: list[int] = []
    if not screening.is_complete and found.ranges:
        lowest = min(first for first, _ in found.ranges.values())
        highest = max(last for _, last in found.ranges.values())
        elsewhere = doubtful.borne_elsewhere(lowest, highest)
    again = screening.recall(elsewhere)
    judged = doubtful.judged(again, terms)
    return Judged(
        counts=_counts(screening, again.units, judged.counts),
        coverage=summed(
            [screened_coverage(found.units, bins), judged.coverage],
            bins,
            without=screened_coverage(again.units, bins),
        ),
        findings=judged.findings,
    )


class _Doubtful(Protocol):
    """The rows that screening doubted."""

    def borne_elsewhere(self, lowest: int, highest: int) -> list[int]:
        """Return the sequences that rows bear which were doubtful only under what they claim.

        One that cannot be read bears what it claims, which another unit may have found right.
        """

    def judged(self, again: Found, terms: _Terms) -> Judged:
        """Judge it together with what was recalled; that was found signed."""


class _Here:
    """Judges in the driver."""

    def __init__(self, found: Found, keys: Mapping[int, bytes]) -> None:
        self._expected = found.rows(CHAIN)
        self._raw = found.rows(SERVED)
        self._served = [decode_row(row, keys.get(row["node_id"])) for row in self._raw]

    def borne_elsewhere(self, lowest: int, highest: int) -> list[int]:
        held = {row["sequence_id"] for row in self._expected}
        ours = (row for row in self._served if row["originator_id"] == BLOCKCHAIN_ORIGINATOR_ID)
        borne = {row["sequence_id"] for row in ours if lowest <= row["sequence_id"] <= highest}
        return [int(sequence_id) for sequence_id in borne - held]

    def judged(self, again: Found, terms: _Terms) -> Judged:
        raw = again.rows(SERVED)
        rows = [*self._expected, *again.rows(CHAIN), *self._served]
        rows += (decode_row(row, None) for row in raw)
        rows.sort(key=lambda row: (*_key(row), row.get("node_id", -1)))
        tally = Tally()
        found = list(_findings(rows, terms, tally))
        envelopes = {
            (row["node_id"], row["row_index"]): row["envelope"] for row in [*self._raw, *raw]
        }
        for row in found:
            row["envelope"] = envelopes.get((row["node_id"], row["row_index"]))
        return _judged([tally], found, terms)


class _InSpark:
    """Judges in Spark."""

    def __init__(self, found: Found, keys: Mapping[int, bytes]) -> None:
        self._found = found
        self._keys = keys

    def borne_elsewhere(self, lowest: int, highest: int) -> list[int]:
        is_held = sf.col("sequence_id").between(Decimal(lowest), Decimal(highest))
        is_ours = sf.col("originator_id") == BLOCKCHAIN_ORIGINATOR_ID
        # Decoded once more with their signatures, by which nothing is decided here.
        served = served_envelopes(self._found.frame(SERVED), {})
        borne = served.filter(is_ours & is_held).select("sequence_id").distinct()
        held = self._found.frame(CHAIN).select("sequence_id")
        rows = borne.join(held, "sequence_id", "left_anti").toArrow()
        return [int(sequence_id) for sequence_id in rows["sequence_id"].to_pylist()]

    def judged(self, again: Found, terms: _Terms) -> Judged:
        doubtful, right = self._found.frame(SERVED), again.frame(SERVED)
        expected = self._found.frame(CHAIN).unionByName(again.frame(CHAIN))
        served = served_envelopes(doubtful, self._keys).unionByName(served_envelopes(right, {}))
        return _judged_by_spark(expected, doubtful.unionByName(right), served, terms)


def _judged_by_spark(
    expected: DataFrame, raw: DataFrame, served: DataFrame, terms: _Terms
) -> Judged:
    """Judge by one shuffle; what is shown as evidence is read again, for few rows.

    What travels through the shuffle has a fixed width: digests, places and flags.
    """
    lanes = expected.select(*_CHAIN_LANES).unionByName(
        served.select(*_SERVED_LANES), allowMissingColumns=True
    )
    by_key = lanes.repartition(*_KEY).sortWithinPartitions(
        *_KEY, sf.col("node_id").asc_nulls_first()
    )
    schema = from_arrow_schema(_JUDGED)
    with kept(by_key.mapInArrow(partial(_judge_batches, terms=terms), schema)) as judged:
        tallies = judged.filter(sf.col(_TALLY).isNotNull()).select(_TALLY).collect()
        found = judged.filter(sf.col(_TALLY).isNull()).join(
            raw.select("node_id", "row_index", "envelope"), ["node_id", "row_index"], "left"
        )
        rows = rows_of(found.select(*COLUMNS))
    return _judged([read_tally(row[_TALLY]) for row in tallies], rows, terms)


def _judge_batches(batches: Iterable[pa.RecordBatch], terms: _Terms) -> Iterator[pa.RecordBatch]:
    rows = chained.from_iterable(batch.to_pylist() for batch in batches)
    tally = Tally()
    found = _findings(rows, terms, tally)
    while some := list(islice(found, _BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema=_JUDGED)
    yield pa.RecordBatch.from_pylist([{_TALLY: tally.text()}], schema=_JUDGED)


def _key(row: Mapping[str, Any]) -> Key:
    return row["originator_id"], row["sequence_id"]


def _findings(rows: Iterable[Mapping[str, Any]], terms: _Terms, tally: Tally) -> Iterator[Row]:
    """Judge rows that are ordered by key, the chain's first: they name no node.

    A node's rows are not held together: it may serve any number under one key.
    """
    nodes = {node.node_id: node for node in terms.nodes}
    for key, group in groupby(rows, _key):
        chain: list[Mapping[str, Any]] = []
        verdicts: dict[int, Verdict] = {}
        for row in group:
            node_id = row.get("node_id")
            if node_id is None:
                chain.append(row)
                continue
            if node_id not in verdicts:
                verdicts[node_id] = begin(key, chain, nodes[node_id])
            verdicts[node_id].see(row)
            yield from row_findings(verdicts[node_id], row)
        for node_id in nodes if chain else ():
            if node_id not in verdicts:
                verdicts[node_id] = begin(key, chain, nodes[node_id])
        for verdict in verdicts.values():
            tally.add(verdict, terms.bins)
            yield from key_findings(verdict)


def _judged(tallies: Sequence[Tally], found: Iterable[Row], terms: _Terms) -> Judged:
    # The same bytes served twice are one thing found, beside the duplication itself.
    distinct = {tuple(row[name] for name in COLUMNS) for row in found}
    return Judged(
        counts={
            node_id: {"node_id": node_id, **counts}
            for node_id, counts in node_counts(tallies, terms.nodes).items()
        },
        coverage=covered(tallies, terms.bins),
        findings=[dict(zip(COLUMNS, values, strict=True)) for values in distinct],
    )


def misplaced_rows(found: Found) -> DataFrame:
    """Return the rows that claim another sequence than they bear.

    Columns: ``node_id`` and ``claimed_sequence_id``.
    """
    raw = found.frame(SERVED)
    borne = served_envelopes(raw, {})
    rows = raw.select("node_id", "row_index", "claimed_sequence_id").join(
        borne.select("node_id", "row_index", "sequence_id"), ["node_id", "row_index"]
    )
    return rows.filter(sf.col("claimed_sequence_id") != sf.col("sequence_id")).select(
        "node_id", "claimed_sequence_id"
    )


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


def _compared_node(chain: Export, node: NodeExport) -> ComparedNode:
    first, last = compared_blocks(chain, node)
    return ComparedNode(node.node.node_id, first, last, chain.manifest.sequence_after)


def compared_blocks(chain: Export, node: NodeExport) -> tuple[int, int]:
    """Return the first and last block that both exports speak of."""
    own, whole = node.manifest, chain.manifest
    return max(own.from_block, whole.from_block), min(own.to_block, whole.to_block)
