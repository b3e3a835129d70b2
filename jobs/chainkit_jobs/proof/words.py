"""A proof as text, and as scripts read it."""

from __future__ import annotations

from typing import Any

from chainkit.text.counting import counted
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.proof.result import ChainProof, Problem, Unproved


def proof_as_json(proof: ChainProof) -> dict[str, Any]:
    """Write a proof as scripts read it; only the first problems are listed, but all are counted."""
    tables = ("blocks", "transactions", "receipts", "logs")
    return {
        "trusted_hash": hex0x(proof.trusted_hash),
        "from_block": proof.from_block,
        "to_block": proof.to_block,
        "is_anchored": proof.is_anchored,
        "held": {table: getattr(proof.held, table) for table in tables},
        "proved": {table: getattr(proof.proved, table) for table in tables},
        "problems_total": proof.problems_total,
        "problem_counts": dict(proof.problem_counts),
        "problems": [_problem_as_json(problem) for problem in proof.problems],
        "unproved": [_unproved_as_json(unproved) for unproved in proof.unproved],
    }


def _problem_as_json(problem: Problem) -> dict[str, Any]:
    names = ("block_number", "table", "position", "column", "expected", "got")
    return {"code": problem.code, **{name: getattr(problem, name) for name in names}}


def _unproved_as_json(unproved: Unproved) -> dict[str, Any]:
    gap = unproved.gap
    what = {"code": gap.code, "table": gap.table, "column": gap.column, "detail": gap.detail}
    names = ("rows", "first_block", "last_block")
    return what | {name: getattr(unproved, name) for name in names}


def unproved_words(unproved: Unproved) -> str:
    """Return on one line which values could not be proved, and their places."""
    gap = unproved.gap
    what = f"{gap.table}.{gap.column}" if gap.column else gap.table
    detail = f", {gap.detail}" if gap.detail else ""
    if unproved.first_block is None:
        return f"{what}{detail}"
    rows = counted(unproved.rows, "row")
    return f"{what}{detail}: {rows}, blocks {unproved.first_block} to {unproved.last_block}"
