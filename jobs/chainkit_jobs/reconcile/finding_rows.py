"""Makes findings of comparisons; a finding about an envelope has the served row as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.verdict import Row, Verdict

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
"""Columns of findings.FINDINGS that are found; the others are derived from them."""


def finding_row(code: Code, detail: str, **columns: Any) -> dict[str, Any]:
    """Return a row of COLUMNS; a column that is not named is None."""
    return dict.fromkeys(COLUMNS) | {"code": code.value, "detail": detail} | columns


def row_findings(verdict: Verdict, row: Row) -> Iterator[dict[str, Any]]:
    """Return the findings of one served row (COLUMNS); its ``row_index`` identifies the envelope.

    Each row is compared by itself: of two envelopes under a key, one may be right.
    """
    shown = {
        "row_index": row["row_index"],
        "served_digest": row["digest"],
        "served_transaction_hash": row["transaction_hash"],
        "signature_problem": row["signature_problem"],
    }
    for code, detail in _row_codes(verdict, row):
        yield _finding(verdict, code, detail) | shown


def key_findings(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """Return what concerns a key as a whole, where there is no one envelope to show."""
    if verdict.is_missing:
        yield _finding(verdict, Code.ENVELOPE_MISSING, None)
    if verdict.readable > 1:
        yield _finding(verdict, Code.ENVELOPE_DUPLICATED, f"served {verdict.readable} times")


def _row_codes(verdict: Verdict, row: Row) -> Iterator[tuple[Code, str | None]]:
    chain = verdict.chain
    if row["unreadable"] is not None:
        yield Code.ENVELOPE_UNREADABLE, row["unreadable"]
    elif chain is None:
        if verdict.is_impossible:
            yield Code.ENVELOPE_INVENTED, None
    elif verdict.is_known:
        if row["digest"] != chain["digest"]:
            yield Code.ENVELOPE_ALTERED, _altered(row, chain)
        elif verdict.is_quarantined:
            yield Code.QUARANTINED_SERVED, chain["quarantine_reason"]
        elif not row["is_in_one_form"]:
            yield Code.ENVELOPE_FORM_DIFFERS, None
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
