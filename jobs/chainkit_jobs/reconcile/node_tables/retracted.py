"""ENVELOPE_RETRACTED: wrong envelopes whose very bytes a journal holds as taken back by a reorg."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.journal import journal_entries
from chainkit_jobs.reconcile.node_tables.journal_check import MOVED
from chainkit_jobs.reconcile.node_tables.rows import in_words

_WRONG: Final = frozenset({Code.ENVELOPE_ALTERED.value, Code.ENVELOPE_INVENTED.value})
"""Findings about bytes that the chain does not hold."""


def retracted_findings(
    spark: SparkSession, nodes: Sequence[NodeExport], found: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a finding beside each of ``found`` whose bytes the journal of a node holds.

    ``found`` has evidence.rows.COLUMNS; ``nodes`` are those that have a journal. An envelope is
    identified by its ``served_digest``, over the unsigned envelope and the transaction hash.
    """
    wrong = [row for row in found if row["code"] in _WRONG and row["served_digest"] is not None]
    if not wrong or not nodes:
        return []
    digests = sorted({(bytes(row["served_digest"]),) for row in wrong})
    looked_for = spark.createDataFrame(digests, "digest binary")
    entries = journal_entries(spark, nodes).join(sf.broadcast(looked_for), "digest", "left_semi")
    held: dict[bytes, set[tuple[int, int, str]]] = {}
    for entry in entries.collect():
        words = f"{entry['outcome']} in the journal of node {entry['node_id']}"
        if entry["outcome"] == MOVED:
            words = f"moved to sequence {entry['new_sequence_id']}{words.removeprefix(MOVED)}"
        words += f", reorg {entry['reorg_id']}"
        held.setdefault(bytes(entry["digest"]), set()).add(
            (entry["node_id"], entry["reorg_id"], words)
        )
    return [
        dict(row)
        | {
            "code": Code.ENVELOPE_RETRACTED.value,
            "detail": in_words(w for *_, w in sorted(journals)),
        }
        for row in wrong
        if (journals := held.get(bytes(row["served_digest"])))
    ]
