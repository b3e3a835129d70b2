"""`chainkit audit reconcile` of what nodes answered to the auditor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.audit.answers import write_answers
from support.audit.audit_exports import base_posts, honest, key_of
from support.audit.reconcile_command import A, B, chain_of, node_of, reconcile

pytestmark = pytest.mark.usefixtures("spark")

KEY = key_of(A)
SERVED = honest(base_posts(), KEY)


def findings_of(out: Path) -> list[tuple[str, int, str | None]]:
    rows = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
    return [(row["code"], int(row["sequence_id"]), row["detail"]) for row in rows]


def summary_of(out: Path) -> Any:
    return json.loads((out / "summary.json").read_text())


def test_reconcile__answers_of_a_node_that_is_behind__no_difference_and_says_what_is_left(
    tmp_path: Path,
) -> None:
    out, asked = tmp_path / "audit", write_answers(tmp_path / "asked", SERVED[:-2], KEY)
    nodes: list[Path | str] = [asked, node_of(tmp_path, B)]

    result = reconcile(chain_of(tmp_path), nodes, out, "--tables")

    assert [line[:7] for line in findings_of_node(out, A)] == []
    assert result.exit_code in (0, 1), result.output
    [node, _] = summary_of(out)["nodes"]
    assert (node["expected"], node["matched"]) == (5, 5)
    lacking = "columns beside its envelopes, quarantine, journal and registry"
    assert summary_of(out)["not_compared"][:1] == [
        "node 100: whether it serves sequences above 6, the last that it answered when it was asked"
    ]
    assert any(lacking in sentence for sentence in summary_of(out)["not_compared"])


def findings_of_node(out: Path, node_id: int) -> list[str]:
    rows = [json.loads(line) for line in (out / "findings.jsonl").read_text().splitlines()]
    return [row["code"] for row in rows if row["node_id"] == node_id]


def test_reconcile__asked_twice__what_is_missing_and_what_differs_is_found(tmp_path: Path) -> None:
    lying = [SERVED[0], *SERVED[2:-1], base_posts()[7].envelope(key_of(B))]
    first = write_answers(tmp_path / "first", lying, KEY)
    second = write_answers(tmp_path / "second", SERVED, KEY)
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), [first, f"{A}={second}", node_of(tmp_path, B)], out)

    assert result.exit_code == 1, result.output
    here, there = f"in {first}, and not in {second}", f"in {second}, and not in {first}"
    # Findings of one sequence id stand in the order of their finding ids.
    assert set(findings_of(out)[:3]) == {
        ("ANSWERS_DIFFER", 2, there),
        ("ANSWERS_DIFFER", 8, here),
        ("ANSWERS_DIFFER", 8, there),
    }
    assert [code for code, *_ in findings_of(out)[3:]] == ["ENVELOPE_MISSING", "SIGNATURE_INVALID"]
    assert (
        f"node 100: {second} with the chain: it was compared with {first}"
        in summary_of(out)["not_compared"]
    )


def test_reconcile__operators_export_beside_longer_answers__only_what_both_speak_of_is_compared(
    tmp_path: Path,
) -> None:
    own = node_of(tmp_path, A, to_block=15)
    asked = write_answers(tmp_path / "asked", SERVED, KEY)
    out = tmp_path / "audit"

    result = reconcile(chain_of(tmp_path), [asked, own], out)

    assert result.exit_code == 0, result.output
    assert findings_of(out) == []
