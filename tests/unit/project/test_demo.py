from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.summary import Summary, count_codes

FACTS = {
    "messages_published": 3,
    "real_client_messages": 2,
    "second_device": {"texts": 1, "proven": 1},
    "quarantined": 1,
    "reorg": {"depth": 2, "kept": 1, "moved": 1, "dropped": 1},
    "honest_nodes_identical": True,
    "expected_findings": {"ENVELOPE_MISSING": 1},
    "findings": {},
    "live_lies_told": {"OUT_OF_ORDER": 1},
    "live_lies_reported": {},
    "live_lies_proved_by_client": {},
    "report_verified": False,
    "node_disabled": True,
    "proposals": 3,
    "html_report": "report.html",
}


def test_expect__the_same__notes_nothing() -> None:
    summary = Summary()

    summary.expect("findings", [1, 2], [1, 2])

    assert summary.faults == []


def test_expect__another__is_a_fault_that_the_summary_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = Summary(facts=dict(FACTS), seconds={"deploy": 1.234})

    summary.expect("findings", ["ENVELOPE_MISSING"], [])
    summary.write(tmp_path / "summary.json")
    summary.show()

    content = json.loads((tmp_path / "summary.json").read_text())
    assert content["ok"] is False
    assert content["faults"] == ["findings: expected ['ENVELOPE_MISSING'], got []"]
    assert content["seconds"] == {"deploy": 1.23}
    printed = capsys.readouterr().out
    assert "NOT proved" in printed
    assert "findings: expected" in printed


def test_count_codes__several__are_counted_in_order() -> None:
    assert count_codes(["B", "A", "B"]) == {"A": 1, "B": 2}
