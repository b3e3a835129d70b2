"""From a verdict to findings, each of which names the served row that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile import Row, Verdict

COLUMNS: Final = (
    "code",
    "node_id",
    "originator_id",
    "sequence_id",
    "block_number",
    "log_index",
    "transaction_hash",
    "expected_digest",
    "served_digest",
    "served_transaction_hash",
    "signature_problem",
    "envelope",
    "detail",
)
"""Columns of findings.FINDINGS that are found; the others follow from them."""


def findings_of(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Return what a verdict finds (COLUMNS); ``row_index`` stands for the envelope.

    It leads to the served row, and is None where there is no one envelope to show.
    """
    if verdict.is_missing:
        yield _finding(verdict, Code.ENVELOPE_MISSING, None)
    times = len(verdict.readable)
    if times > 1:
        yield _finding(verdict, Code.ENVELOPE_DUPLICATED, f"served {times} times")
    # Of two envelopes under a key, one may be right.
    for row in verdict.rows:
        shown = {
            "row_index": row["row_index"],
            "served_digest": row["digest"],
            "served_transaction_hash": row["transaction_hash"],
            "signature_problem": row["signature_problem"],
        }
        for code, detail in _row_codes(verdict, row):
            yield _finding(verdict, code, detail) | shown


def _row_codes(verdict: Verdict, row: Row) -> Iterator[tuple[Code, str | None]]:
    if row["unreadable"] is not None:
        yield Code.ENVELOPE_UNREADABLE, row["unreadable"]
    elif verdict.is_invented:
        yield Code.ENVELOPE_INVENTED, None
    elif verdict.is_known and verdict.chain is not None:
        if row["digest"] != verdict.chain["digest"]:
            yield Code.ENVELOPE_ALTERED, _altered(row, verdict.chain)
        elif verdict.is_quarantined_served:
            yield Code.QUARANTINED_SERVED, verdict.chain["quarantine_reason"]
    if row["signature_problem"] is not None:
        yield Code.SIGNATURE_INVALID, row["signature_problem"]


def _altered(row: Row, chain: Row) -> str:
    if row["transaction_hash"] != chain["transaction_hash"]:
        return "names another transaction"
    return "the right transaction, other envelope bytes"


def _finding(verdict: Verdict, code: Code, detail: str | None) -> dict[str, Any]:
    chain = verdict.chain or {}
    originator_id, sequence_id = verdict.key
    return {
        "code": code.value,
        "node_id": verdict.node_id,
        "originator_id": originator_id,
        "sequence_id": sequence_id,
        "block_number": chain.get("block_number"),
        "log_index": chain.get("log_index"),
        "transaction_hash": chain.get("transaction_hash"),
        "expected_digest": chain.get("digest"),
        "served_digest": None,
        "served_transaction_hash": None,
        "signature_problem": None,
        "row_index": None,
        "detail": detail,
    }
