"""Makes findings of comparisons; a finding about an envelope has the served row as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.key_comparison import KeyComparison, Row

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


def row_findings(comparison: KeyComparison, row: Row) -> Iterator[dict[str, Any]]:
    """Return the findings of one served row (COLUMNS); its ``row_index`` identifies the envelope.

    Each row is compared by itself: of two envelopes under a key, one may be right.
    """
    shown = {
        "row_index": row["row_index"],
        "served_digest": row["digest"],
        "served_transaction_hash": row["transaction_hash"],
        "signature_problem": row["signature_problem"],
    }
    for code, detail in _row_codes(comparison, row):
        yield _finding(comparison, code, detail) | shown


def key_findings(comparison: KeyComparison) -> Iterator[dict[str, Any]]:
    """Return what concerns a key as a whole, where there is no one envelope to show."""
    if comparison.is_missing:
        yield _finding(comparison, Code.ENVELOPE_MISSING, None)
    if comparison.readable > 1:
        yield _finding(comparison, Code.ENVELOPE_DUPLICATED, f"served {comparison.readable} times")


def _row_codes(comparison: KeyComparison, row: Row) -> Iterator[tuple[Code, str | None]]:
    chain = comparison.chain
    if row["unreadable"] is not None:
        yield Code.ENVELOPE_UNREADABLE, row["unreadable"]
    elif chain is None:
        if comparison.is_impossible:
            yield Code.ENVELOPE_INVENTED, None
    elif comparison.is_known:
        if row["digest"] != chain["digest"]:
            yield Code.ENVELOPE_ALTERED, _altered(row, chain)
        elif comparison.is_quarantined:
            yield Code.QUARANTINED_SERVED, chain["quarantine_reason"]
        elif not row["is_in_one_form"]:
            yield Code.ENVELOPE_FORM_DIFFERS, None
    if row["signature_problem"] is not None:
        yield Code.SIGNATURE_INVALID, row["signature_problem"]


def _altered(row: Row, chain: Row) -> str:
    if row["transaction_hash"] != chain["transaction_hash"]:
        return "names another transaction"
    return "the right transaction, other envelope bytes"


def _finding(comparison: KeyComparison, code: Code, detail: str | None) -> dict[str, Any]:
    chain = comparison.chain or {}
    originator_id, sequence_id = comparison.key
    return {
        "code": code.value,
        "node_id": comparison.node_id,
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
