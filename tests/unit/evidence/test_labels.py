"""A forger's words above a true proof are not shown, though all digests are computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.evidence import BundleVerdict
from chainkit.errors import ChainkitError, MalformedData
from support.audit.bundles import (
    BundleScene,
    bundle_scene,
    copied,
    relabel,
    reseal,
    rewrite_line,
    usual_findings,
    verified,
)
from support.command_line import run

pytest_plugins = ["support.audit.bundle_fixtures"]

DIGEST = "0x" + "0b" * 32
EVENT = {"block_number": 7, "log_index": 7, "detail": "an invented story"}
VALUES: dict[str, list[Any]] = {
    "code": ["SIGNATURE_INVALID", "ENVELOPE_ALTERED", "QUARANTINED_SERVED", "NODE_BEHIND", "X"],
    "originator_id": [None, 1, 7],
    "sequence_id": [None, "0", "3", "7", "18446744073709551615"],
    "transaction_hash": [None, DIGEST, "another"],
    "expected_digest": [None, DIGEST],
    "served_digest": [None, DIGEST],
    "event": [EVENT],
    "envelope": [None, "0x", "another"],
    "finding_id": ["0b" * 32],
    "unsigned_report_sha256": [None, "0b" * 32],
    "report_sha256": ["0b" * 32],
    "severity": ["critical"],
    "detail": ["an invented story"],
    "block_number": [7],
    "log_index": [7],
}


def shown(result: BundleVerdict) -> set[tuple[object, ...]]:
    """Everything that is shown as a finding's own, a fact each."""
    facts: set[tuple[object, ...]] = set()
    for finding in result.findings:
        signed = finding.signed_digest
        facts |= {(signed, code, finding.sequence_id) for code in finding.codes}
        facts.add((signed, finding.verdict, finding.originator_id, finding.sequence_id))
    return facts


def lines(scene: BundleScene) -> list[dict[str, Any]]:
    text = (scene.bundle / "findings.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_verify_bundle__every_leaf_of_a_finding_forged_and_sealed__shows_nothing_new(
    sealed: BundleScene, tmp_path: Path
) -> None:
    honest, others = shown(verified(sealed)), lines(sealed)
    outcomes = {"refused": 0, "shown": 0}
    # With a sequence taken away, the event that stands for it comes in its place.
    pairs = [{"sequence_id": None, "event": EVENT}]
    changes = [{name: value} for name, values in VALUES.items() for value in values] + pairs
    for number in range(len(others)):
        for position, change in enumerate(changes):
            scene = copied(sealed, tmp_path / f"{number}-{position}")
            forged = {
                name: others[number - 1][name] if value == "another" else value
                for name, value in change.items()
            }
            if set(forged) <= {"code", "originator_id", "node_id", *VALUES} - {"finding_id"}:
                relabel(scene.bundle, number, **forged)
            else:
                rewrite_line(scene.bundle / "findings.jsonl", number, **forged)
                reseal(scene.bundle)
            try:
                found = shown(verified(scene))
            except ChainkitError:
                outcomes["refused"] += 1
                continue
            outcomes["shown"] += 1
            unproved = {fact for fact in found - honest if fact[0] is not None}
            assert not unproved, (number, forged, unproved)

    assert outcomes["refused"] > 100
    assert outcomes["shown"] > 10


def test_verify__code_forged_above_a_true_proof__is_told_as_a_claim(scene: BundleScene) -> None:
    relabel(scene.bundle, 0, code="SIGNATURE_INVALID")
    trust = ("--trust", "0x" + scene.trusted_hash.hex(), "--deployment", scene.record_path)

    outcome = run("council", "verify", scene.bundle, *trust)
    as_json = run("council", "verify", scene.bundle, *trust, "--json").content["findings"][0]

    assert outcome.code == 0, outcome.err
    heading, claim, *_ = outcome.out.partition("\nfinding ")[2].splitlines()
    assert heading.endswith(", ENVELOPE_ALTERED, sequence 3")
    assert claim == "claimed         SIGNATURE_INVALID, which does not follow from the bundle"
    assert (as_json["codes"], as_json["sequence_id"]) == (["ENVELOPE_ALTERED"], "3")
    assert as_json["claimed_code"] == "SIGNATURE_INVALID"


def test_verify_and_triage__sequence_forged_above_a_true_proof__refuse_the_bundle(
    scene: BundleScene,
) -> None:
    relabel(scene.bundle, 0, code="SIGNATURE_INVALID", sequence_id="7")
    trust = ("--trust", "0x" + scene.trusted_hash.hex(), "--deployment", scene.record_path)

    verify = run("council", "verify", scene.bundle, *trust)
    triage = run("council", "triage", scene.bundle, *trust)

    words = "expected sequence 3 of originator 0, as its envelope has"
    assert (verify.code, triage.code) == (2, 0)
    assert words in " ".join(verify.err.split())
    assert words in " ".join(triage.out.split())
    assert triage.out.endswith("disable         none\n")


def test_verify__finding_of_a_table_as_a_whole__has_the_id_of_its_words(
    tmp_path: Path,
) -> None:
    scene = bundle_scene(tmp_path)
    behind = scene.finding("NODE_BEHIND", 99, None)
    behind |= {"sequence_id": None, "detail": "blocks 3 to 9, \u202e\\"}
    scene.write([*usual_findings(scene), behind])

    assert verified(scene).verdict == "proved"
    for number, line in enumerate(lines(scene)):
        if line["event"] is not None:
            rewrite_line(
                scene.bundle / "findings.jsonl", number, event=line["event"] | {"detail": "x"}
            )
    reseal(scene.bundle)
    with pytest.raises(MalformedData, match="the id of what it says"):
        verified(scene)
