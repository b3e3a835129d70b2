"""The output of an audit: tables for machines, a summary, and a page for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit import __version__
from chainkit.exports import Manifest
from chainkit.text.printable import printable
from chainkit_jobs.findings import FINDINGS
from chainkit_jobs.output_folder import new_folder
from chainkit_jobs.proof import ChainProof
from chainkit_jobs.proof.words import unproved_words
from chainkit_jobs.reconcile.audit import Audit, Row
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.conclusion import SUMMARY_FORMAT, conclude, not_compared
from chainkit_jobs.reconcile.coverage import COVERAGE
from chainkit_jobs.report.page import ReportInput, render_report


def write_outputs(directory: Path, audit: Audit) -> dict[str, Any]:
    """Write all outputs beside ``directory``, rename them into place, and return the summary.

    The same exports give the same bytes, however Spark divided the work. Raises StoreError if
    the folder exists or cannot be written.
    """
    with new_folder(directory) as partial:
        summary = summarize(audit)
        _write_table(partial / "findings", audit.findings, FINDINGS)
        _write_table(partial / "coverage", audit.coverage, COVERAGE)
        (partial / "summary.json").write_text(_json(summary, indent=2) + "\n")
        page = ReportInput(summary, audit.findings, audit.coverage, audit.costs)
        (partial / "report.html").write_text(render_report(page), encoding="utf-8")
    return summary


def summarize(audit: Audit) -> dict[str, Any]:
    """Return the summary: inputs with digests, what was compared, what not, and the counts."""
    manifest = audit.scope.chain.manifest
    findings = _count(audit.findings, "code")
    conclusion = conclude(audit)
    return {
        # Its name puts it on the first line, because keys are sorted.
        "assurance": {"complete": not conclusion.lacking, "lacking": list(conclusion.lacking)},
        "format": SUMMARY_FORMAT,
        "tool": f"chainkit {__version__}",
        "outcome": conclusion.outcome.value,
        "verdict": conclusion.verdict,
        "chain": {
            **audit.scope.chain.named(),
            "payloads": audit.payloads.count,
            "quarantined": audit.payloads.quarantined,
            "left_out": audit.payloads.left_out,
            "first_sequence": audit.payloads.first_sequence,
            "last_sequence": audit.payloads.last_sequence,
            "sequence_before": manifest.sequence_before,
            "sequence_after": manifest.sequence_after,
            "payload_contracts": manifest.payload_contracts,
            "counters": manifest.counters,
        },
        "nodes": [_summarize_node(audit, node) for node in audit.scope.nodes],
        "refused": [asdict(each) for each in audit.scope.comparability.refused],
        "with_signatures": audit.scope.options.with_signatures,
        "with_tables": audit.scope.options.with_tables,
        "tables_compared": audit.tables_compared,
        "trust": _summarize_proof(audit.scope.proof) if audit.scope.proof else None,
        "findings": findings,
        "findings_total": sum(findings.values()),
        "severities": _count(audit.findings, "severity"),
        "set_aside": list(audit.reasons),
        "undecided": list(conclusion.undecided),
        "not_compared": not_compared(audit),
    }


def _summarize_proof(proof: ChainProof) -> dict[str, Any]:
    return {
        "block_hash": "0x" + proof.trusted_hash.hex(),
        "proved": {each.name: getattr(proof.proved, each.name) for each in fields(proof.proved)},
        "not_proved": [unproved_words(each) for each in proof.unproved],
    }


def _summarize_node(audit: Audit, node: NodeExport) -> dict[str, Any]:
    manifest, node_id = node.manifest, node.node.node_id
    counts = audit.counts.get(node_id)
    own = [row for row in audit.findings if row["node_id"] == node_id]
    return {
        "node_id": node_id,
        "public_key": "0x" + node.node.signing_key.hex(),
        "http_address": printable(node.node.http_address),
        "is_enabled": node.node.is_enabled,
        "manifest_sha256": node.export.manifest_digest,
        "from_block": manifest.from_block,
        "to_block": manifest.to_block,
        "to_block_hash": manifest.to_block_hash,
        "established": _established(manifest),
        "compared": counts is not None,
        "expected": counts["expected"] if counts else None,
        "served": counts["served"] if counts else None,
        "matched": counts["matched"] if counts else None,
        "undecided": counts["undecided"] if counts else None,
        "findings": _count(own, "code"),
    }


def _established(manifest: Manifest) -> dict[str, int] | None:
    """Return how many blocks the node established in each way; None where it does not report it."""
    if manifest.established is None:
        return None
    blocks: Counter[str] = Counter()
    for run in manifest.established:
        blocks[run["how"]] += run["to_block"] - run["from_block"] + 1
    return dict(sorted(blocks.items()))


def _count(findings: Iterable[Row], column: str) -> dict[str, int]:
    return dict(sorted(Counter(str(row[column]) for row in findings).items()))


def _write_table(path: Path, rows: list[Row], schema: pa.Schema) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path.with_suffix(".parquet"))
    lines = (_json({name: json_value(row[name]) for name in schema.names}) for row in rows)
    path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))


def json_value(value: Any) -> Any:
    """Write bytes as 0x hex and decimals (uint64, wei) as text: JSON readers round numbers."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value) if isinstance(value, Decimal) else value


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, indent=indent, sort_keys=True)
