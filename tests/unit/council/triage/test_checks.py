"""Pieces of evidence checked one by one: what is at fault with one is its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.council.triage import checks as triage_checks
from chainkit.council.triage.checks import Examiner, work
from chainkit.council.triage.falls import Fall
from chainkit.council.triage.files import Piece, find_evidence
from chainkit.council.triage.values import Claim, Dismissed
from chainkit.errors import EndpointUnavailable
from chainkit.misbehavior.types import Misbehavior
from support.audit.audit_exports import key_of
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    REPORTED_AT,
    REPORTER,
    BundleScene,
    Reporter,
    bundle_scene,
    reseal,
    rewrite_line,
)
from support.council.triage import AUDITOR, SceneRegistry, liveness_report, safety_report
from support.endpoints.fake_endpoint import RpcError
from support.originated import NOW_NS, signed


@pytest.fixture
def scene(tmp_path: Path) -> BundleScene:
    return bundle_scene(tmp_path)


def examined(
    scene: BundleScene, heap: Path, examiner: Examiner | None = None
) -> tuple[dict[str, Claim], dict[str, Dismissed]]:
    examiner = examiner or Examiner(scene.record, SceneRegistry(scene=scene).witness())
    found = find_evidence(heap)
    steps: list[int] = []
    claims, dismissed = examiner.examine(found, steps.append)
    assert sum(steps) == work(found)
    return {each.source: each for each in claims}, {each.source: each for each in dismissed}


def offline(scene: BundleScene, *trusted: bytes) -> Examiner:
    return Examiner(scene.record, None, trusted or (scene.trusted_hash,))


def put_bundle(scene: BundleScene, heap: Path, name: str = "bundle", **options: Any) -> Path:
    scene.write(out=name, **options)
    return Path(shutil.move(scene.root / name / f"node-{ACCUSED}", heap / name))


def forged(*envelopes: bytes) -> bytes:
    return safety_report(ACCUSED, AUDITOR, Misbehavior.BLOCKCHAIN_INCONSISTENCY, *envelopes)


def test_examine__bundle__is_a_claim_with_and_without_an_endpoint(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap)

    for examiner in (None, offline(scene)):
        claims, dismissed = examined(scene, heap, examiner)
        claim = claims["bundle"]
        assert (claim.node_id, claim.reporter) == (ACCUSED, REPORTER.public_key)
        assert claim.accused_key == key_of(ACCUSED).public_key
        assert len(claim.proofs) == 1
        assert not dismissed


def test_examine__reports__are_judged_by_what_the_endpoint_knows(
    scene: BundleScene, heap: Path
) -> None:
    altered = scene.altered(3)["envelope"]
    # An envelope that no log gives: it needs no transaction to be proved.
    impossible = replace(scene.post(3), sequence_id=0).envelope(key_of(ACCUSED))
    (heap / "altered.pb").write_bytes(forged(altered))
    (heap / "both.bin").write_bytes(forged(impossible, altered))

    claims, dismissed = examined(scene, heap)

    assert claims.keys() == {"both.bin"}
    assert claims["both.bin"].reporter == AUDITOR.public_key
    assert len(claims["both.bin"].proofs) == 1
    assert dismissed["altered.pb"].node_id == ACCUSED
    assert dismissed["altered.pb"].reason.startswith("not proved: this endpoint does not know")


def test_examine__same_envelope_in_two_bundles__has_one_digest(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, "a")
    put_bundle(scene, heap, "b", reporter=Reporter(REPORTED_AT + 1, AUDITOR))

    claims, _ = examined(scene, heap, offline(scene))

    assert claims["a"].proofs == claims["b"].proofs
    assert claims["a"].reporter != claims["b"].reporter


def test_examine__bundle_that_nobody_signed__has_no_reporter(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, reporter=Reporter(0, None))

    claims, _ = examined(scene, heap)

    assert (claims["bundle"].reporter, len(claims["bundle"].proofs)) == (None, 1)


def test_examine__bundle_that_only_names_a_reporter__has_none(
    scene: BundleScene, heap: Path
) -> None:
    bundle = put_bundle(scene, heap)
    shutil.rmtree(bundle / "reports")
    (bundle / "reports").mkdir()
    without = {"report_sha256": None, "unsigned_report_sha256": None}
    for number in range(5):
        rewrite_line(bundle / "findings.jsonl", number, **without)
    victim = "0x" + key_of(OTHER).public_key.hex()
    reseal(bundle, proving_themselves=0, reporter_public_key=victim)

    claims, _ = examined(scene, heap)

    assert (claims["bundle"].reporter, len(claims["bundle"].proofs)) == (None, 1)


def test_examine__bundle_that_proves_nothing__is_dismissed_with_the_reason(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, findings=[scene.finding("ENVELOPE_MISSING", 5, None)])

    claims, dismissed = examined(scene, heap)

    assert not claims
    assert dismissed["bundle"].node_id == ACCUSED
    assert dismissed["bundle"].reason.startswith("not proved: nothing was served that proves it")


def test_examine__bundle_of_another_block__is_unchecked_without_its_hash(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap)

    claims, dismissed = examined(scene, heap, offline(scene, b"\x01" * 32, b"\x02" * 32))

    assert not claims
    assert dismissed["bundle"].is_unchecked
    assert dismissed["bundle"].reason.startswith("no --trust is the hash of block 20, in which it")


def test_examine__bundle_of_another_registry__does_not_count(
    scene: BundleScene, heap: Path
) -> None:
    bundle = put_bundle(scene, heap)
    foreign = scene.record
    foreign = replace(foreign, node_registry=replace(foreign.node_registry, address=b"\x99" * 20))

    claims, dismissed = examined(scene, heap, replace(offline(scene), record=foreign))

    assert not claims
    assert "NodeRegistry of the record" in dismissed["bundle"].reason
    assert not dismissed["bundle"].is_unchecked
    assert bundle.exists()


def test_examine__broken_files__do_not_stop_the_others(scene: BundleScene, heap: Path) -> None:
    put_bundle(scene, heap, "good")
    bad = put_bundle(scene, heap, "bad")
    (bad / "findings.jsonl").write_bytes(b"{}\n")
    linked = put_bundle(scene, heap, "linked")
    (linked / "headers.rlp").unlink()
    os.symlink(heap / "good" / "headers.rlp", linked / "headers.rlp")
    (heap / "empty").mkdir()
    (heap / "empty" / "bundle.json").mkdir()
    (heap / "garbage.pb").write_bytes(b"\xff\x1b[2J")
    (heap / "unsigned.pb").write_bytes(b"")

    claims, dismissed = examined(scene, heap)

    assert claims.keys() == {"good"}
    assert dismissed.keys() == {"bad", "linked", "empty", "garbage.pb", "unsigned.pb"}
    assert not any(each.is_unchecked for each in dismissed.values())


def test_examine__report_larger_than_any__is_not_read(
    scene: BundleScene, heap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triage_checks, "LARGEST_REPORT", 50)
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))

    claims, dismissed = examined(scene, heap)

    assert not claims
    assert "expected up to 50 bytes, got more" in dismissed["report.pb"].reason


def test_examine__file_swapped_for_a_link_meanwhile__is_refused(
    scene: BundleScene, heap: Path
) -> None:
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))
    found = find_evidence(heap)
    (heap / "real.pb").write_bytes((heap / "report.pb").read_bytes())
    (heap / "report.pb").unlink()
    (heap / "report.pb").symlink_to(heap / "real.pb")

    examiner = Examiner(scene.record, SceneRegistry(scene=scene).witness())
    claims, (dismissed,) = examiner.examine(found, lambda more: None)

    assert not claims
    assert "no link" in dismissed.reason


def test_examine__liveness_report__is_a_claim_of_its_signer(scene: BundleScene, heap: Path) -> None:
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))
    (heap / "unknown.pb").write_bytes(liveness_report(900, key_of(OTHER)))

    claims, _ = examined(scene, heap)

    claim = claims["report.pb"]
    assert (claim.misbehavior, claim.proofs) == (Misbehavior.UNRESPONSIVE_NODE, frozenset())
    assert (claim.reporter, claim.is_from_node) == (key_of(OTHER).public_key, True)
    assert claim.accused_key == key_of(ACCUSED).public_key
    assert claims["unknown.pb"].accused_key is None


def test_examine__safety_report__is_judged_by_its_envelopes(scene: BundleScene, heap: Path) -> None:
    one, two = (signed(ACCUSED, 1, NOW_NS - age) for age in (5, 6))
    gap = Misbehavior.OUT_OF_ORDER
    duplicate = Misbehavior.DUPLICATE_SEQUENCE_ID
    reports = {
        "proof.pb": safety_report(ACCUSED, AUDITOR, duplicate, one, two),
        "again.pb": safety_report(ACCUSED, key_of(OTHER), duplicate, two, one),
        "gap.pb": safety_report(ACCUSED, key_of(OTHER), gap, signed(ACCUSED, 3), one),
        "honest.pb": safety_report(ACCUSED, key_of(OTHER), gap, one),
        "foreign.pb": safety_report(ACCUSED, AUDITOR, duplicate, signed(OTHER, 1)),
        "unknown.pb": safety_report(900, AUDITOR, duplicate, one, two),
    }
    for name, data in reports.items():
        (heap / name).write_bytes(data)

    claims, dismissed = examined(scene, heap)

    assert claims.keys() == {"proof.pb", "again.pb", "gap.pb"}
    assert len(claims["proof.pb"].proofs) == 1
    assert claims["proof.pb"].proofs == claims["again.pb"].proofs
    assert (claims["gap.pb"].proofs, claims["gap.pb"].reason) == (frozenset(), "3 came after 1")
    told = {name: (each.reason, each.node_id) for name, each in dismissed.items()}
    assert told == {
        "honest.pb": ("refuted: 1 follows 0, and time does not go back", ACCUSED),
        "foreign.pb": (f"refuted: node {ACCUSED} signed none of its envelopes", ACCUSED),
        "unknown.pb": ("refuted: node 900 is not registered", None),
    }


@pytest.mark.parametrize(
    ("by_ns", "fall"),
    [
        (5, Fall(NOW_NS, 5)),
        (300 * 10**9, Fall(NOW_NS, 300 * 10**9)),
        # No load makes a clock go back by more than clocks may differ.
        (300 * 10**9 + 1, None),
    ],
)
def test_examine__time_that_fell__is_a_proof_that_says_by_how_much(
    scene: BundleScene, heap: Path, by_ns: int, fall: Fall | None
) -> None:
    early, late = signed(ACCUSED, 1, NOW_NS), signed(ACCUSED, 2, NOW_NS - by_ns)
    report = safety_report(ACCUSED, key_of(OTHER), Misbehavior.OUT_OF_ORDER, late, early)
    (heap / "fall.pb").write_bytes(report)

    claims, _ = examined(scene, heap)

    assert len(claims["fall.pb"].proofs) == 1
    assert claims["fall.pb"].fall == fall


def test_examine__report_without_an_endpoint__is_unchecked(scene: BundleScene, heap: Path) -> None:
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))

    _, dismissed = examined(scene, heap, offline(scene))

    assert dismissed["report.pb"].is_unchecked
    assert "needs --rpc" in dismissed["report.pb"].reason


def refused(*_: Any) -> RpcError:
    return RpcError(-32000, "no such thing")


def test_examine__endpoint_refuses_one_answer__leaves_that_piece_unchecked(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap)
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))
    witness = SceneRegistry(scene=scene).witness(eth_getTransactionReceipt=refused)

    claims, dismissed = examined(scene, heap, Examiner(scene.record, witness))

    assert claims.keys() == {"report.pb"}
    assert dismissed["bundle"].is_unchecked


def test_examine__endpoint_answers_no_more__ends_at_once(
    scene: BundleScene, heap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (heap / f"{number}.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))
    looked_at: list[Piece] = []

    def gone(_: Examiner, piece: Piece, *others: Sequence[Any]) -> Claim:
        looked_at.append(piece)
        raise EndpointUnavailable("endpoint", "an answer", "none")

    monkeypatch.setattr(Examiner, "_examine", gone)

    with pytest.raises(EndpointUnavailable):
        examined(scene, heap)
    assert len(looked_at) == 1
