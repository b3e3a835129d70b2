"""A check as a text, as JSON and as metrics."""

from __future__ import annotations

import json

from prometheus_client.parser import text_string_to_metric_families

from chainkit.misbehavior.evidence import Weight
from chainkit.misbehavior.types import Misbehavior
from chainkit.types import BlockReference
from chainkit_client.checking.check import NodeCheck
from chainkit_client.checking.check_output import check_as_json, check_as_metrics, check_as_text
from chainkit_client.checking.findings import Finding

BLOCK = BlockReference(7, b"\xab" * 32)
TAKEN_NS = 1_700_000_000 * 10**9
LIE = Finding(200, "it signed two different envelopes 3", Misbehavior.DUPLICATE_SEQUENCE_ID)
PROVED = Finding(200, LIE.text, LIE.misbehavior, Weight.PROVED, b"report")
HOSTILE = Finding(200, "refused: \x1b[2J\nnode 100: fine " + "x" * 5000)
CHECKS = [
    NodeCheck(100, None, (0.004, 0.010, 0.006), 12, {0: 4, 100: 8}, ()),
    NodeCheck(200, "no answer", (), 0, {}, (PROVED, HOSTILE)),
]


def test_text__findings__have_type_and_worth_and_fit_the_screen() -> None:
    text = check_as_text(CHECKS, BLOCK, TAKEN_NS)

    assert "node 200: DUPLICATE_SEQUENCE_ID, proved: it signed two different envelopes 3" in text
    assert "6 ms" in text and "10 ms" in text
    assert all(len(line) <= 100 and line.isprintable() for line in text.splitlines())
    assert "none" in check_as_text(CHECKS[:1], BLOCK, TAKEN_NS)


def test_json__findings__are_complete_and_without_evidence() -> None:
    content = json.loads(json.dumps(check_as_json(CHECKS, BLOCK, TAKEN_NS)))

    assert [each["node_id"] for each in content["nodes"]] == [100, 200]
    assert content["nodes"][0]["median_seconds"] == 0.006
    assert content["nodes"][1]["findings"][0] == {
        "text": LIE.text,
        "type": "DUPLICATE_SEQUENCE_ID",
        "weight": "proved",
    }
    assert content["nodes"][1]["findings"][1]["text"] == HOSTILE.text


def test_metrics__findings__are_counted_by_type_and_worth() -> None:
    text = check_as_metrics(CHECKS, TAKEN_NS).decode()
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    assert found["chainkit_check_findings", "200", "DUPLICATE_SEQUENCE_ID", "proved"] == 1
    assert found["chainkit_check_findings", "200", "OTHER", "seen"] == 1
    assert found["chainkit_check_complete", "100"] == 1
    assert found["chainkit_check_complete", "200"] == 0
    assert found["chainkit_check_slowest_answer_seconds", "100"] == 0.010
