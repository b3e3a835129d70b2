"""`chainkit audit bundle` and `chainkit council verify BUNDLE`: options, outputs, exit codes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.signatures import keccak256
from support.audit.audit_exports import key_of
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    REPORTED_AT,
    REPORTER,
    BundleScene,
    bundle_scene,
    usual_findings,
)
from support.command_line import Outcome, run, write_keystore

REPORTED = "2023-11-14T22:13:20Z"
SECRET = keccak256(b"reporter")


@pytest.fixture
def scene(tmp_path: Path) -> BundleScene:
    scene = bundle_scene(tmp_path)
    scene.write_audit(usual_findings(scene))
    return scene


def bundle(scene: BundleScene, *options: object) -> Outcome:
    where = ("--chain", scene.root / "chain", "--out", scene.root / "bundles")
    return run("audit", "bundle", scene.root / "audit", *where, *options)


def verify(scene: BundleScene, *options: object) -> Outcome:
    trust = ("--trust", "0x" + scene.trusted_hash.hex().upper())
    return run(
        "council", "verify", scene.bundle, *trust, "--deployment", scene.record_path, *options
    )


# ------------------------------------------------------------------ audit bundle


def test_bundle__audit_on_a_proved_export__says_what_proves_itself(scene: BundleScene) -> None:
    outcome = bundle(scene)

    assert outcome.code == 0, outcome.err
    first, second, third, *rest = outcome.out.splitlines()
    assert first == str(scene.bundle)
    assert second == "findings        5, proving themselves: 1 (reports unsigned)"
    assert third.startswith("blocks          3 to 20 0x")
    assert sum(line.startswith("not proved  ") for line in rest) == 4
    assert "ENVELOPE_MISSING: nothing was served" in outcome.out
    assert max(map(len, (second, third, *rest))) <= 100


def test_bundle__with_a_key__signs_at_the_time_that_is_given(scene: BundleScene) -> None:
    key = write_keystore(scene.root, SECRET)
    by_command = bundle(scene, *key, "--reported-at", REPORTED, "--json")

    assert by_command.code == 0, by_command.err
    [written] = by_command.content
    assert written["node_id"] == ACCUSED
    assert [each["proves_itself"] for each in written["findings"]] == [True, *[False] * 4]
    page = json.loads((scene.bundle / "bundle.json").read_text())
    assert page["reporter_time_ns"] == REPORTED_AT
    assert page["reporter_public_key"] == "0x" + REPORTER.public_key.hex()


def test_bundle__key_without_a_time__is_a_usage_error(scene: BundleScene) -> None:
    outcome = bundle(scene, *write_keystore(scene.root, SECRET))

    assert outcome.code == 2
    assert "--keystore needs --reported-at" in outcome.err
    assert not (scene.root / "bundles").exists()


@pytest.mark.parametrize("day", ["1969-12-31", "9999-01-01"])
def test_bundle__time_that_no_report_holds__is_a_usage_error(scene: BundleScene, day: str) -> None:
    outcome = bundle(scene, "--reported-at", f"{day}T00:00:00Z")

    assert outcome.code == 2
    assert f"from 1970 to 2262, got {day}" in outcome.err


@pytest.mark.parametrize(("node_id", "words"), [(OTHER, "about 200"), (5, "about 200")])
def test_bundle__node_that_nothing_was_found_about__is_refused(
    scene: BundleScene, node_id: int, words: str
) -> None:
    outcome = bundle(scene, "--node", node_id)

    assert outcome.code == 2
    assert f"expected findings about node {node_id}, and not only notes, got {words}" in outcome.err


def test_bundle__node_that_only_notes_are_about__is_not_accused(scene: BundleScene) -> None:
    behind = scene.finding("NODE_BEHIND", 99, None)
    behind |= {"node_id": OTHER, "sequence_id": None, "originator_id": None, "detail": "blocks"}
    scene.write_audit([scene.altered(3), behind])

    asked, whole = bundle(scene, "--node", OTHER), bundle(scene)

    assert asked.code == 2
    assert "not only notes, got about 200" in asked.err
    assert whole.code == 0, whole.err
    assert [path.name for path in (scene.root / "bundles").iterdir()] == [f"node-{ACCUSED}"]


def test_bundle__no_findings_about_any_node__is_refused(scene: BundleScene) -> None:
    chain_only = scene.finding("CHAIN_SEQUENCE_GAP", 99, None) | {"node_id": None}
    scene.write_audit([chain_only])

    assert "findings about a node, and not only notes, got about no node" in bundle(scene).err


def test_bundle__output_exists__is_not_overwritten(scene: BundleScene) -> None:
    (scene.root / "bundles").mkdir()
    (scene.root / "bundles" / "mine").write_text("mine")

    outcome = bundle(scene)

    assert outcome.code == 2
    assert "already exists" in outcome.err
    assert (scene.root / "bundles" / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ({"trust": None}, "an audit that proved its chain export"),
        ({"trust": {"block_hash": "0x12"}}, "0x and 64 hex digits"),
        ({"trust": {"block_hash": "0x" + "00" * 32}}, "ends in the trusted block"),
        ({"chain": {"manifest_sha256": "00" * 32}}, "whose manifest has sha256 0000"),
        ({"nodes": [3]}, "expected an object"),
        ({"nodes": []}, "findings about nodes of its summary, got node 200"),
        ({"chain": None}, "expected an object"),
    ],
)
def test_bundle__audit_of_another_or_unproved_export__is_refused(
    scene: BundleScene, summary: dict[str, Any], words: str
) -> None:
    scene.write_audit(usual_findings(scene), **summary)

    outcome = bundle(scene)

    assert outcome.code == 2
    assert words in outcome.err
    assert not (scene.root / "bundles").exists()


def test_bundle__folder_is_no_audit__is_refused(scene: BundleScene) -> None:
    (scene.root / "audit" / "summary.json").unlink()

    assert "does not exist" in bundle(scene).err


def test_bundle__findings_of_another_version__are_refused(scene: BundleScene) -> None:
    pq.write_table(pa.table({"code": ["X"]}), scene.root / "audit" / "findings.parquet")

    outcome = bundle(scene)

    assert outcome.code == 2
    assert "the columns of this version" in outcome.err


def test_bundle__chain_export_was_changed__is_refused(scene: BundleScene) -> None:
    with (scene.root / "chain" / "logs.parquet").open("ab") as file:
        file.write(b"x")

    assert "expected sha256" in bundle(scene).err


# ------------------------------------------------------------------ council verify


def test_verify__bundle_that_proves__ends_with_0(scene: BundleScene) -> None:
    assert bundle(scene).code == 0

    plain, as_json = verify(scene), verify(scene, "--json")

    assert (plain.code, as_json.code) == (0, 0), plain.err
    assert "findings        proved: 1, not proved: 3, refuted: 1\nverdict         proved\n" in (
        plain.out
    )
    assert max(map(len, plain.out.splitlines())) <= 100
    assert as_json.content["verdict"] == "proved"
    assert as_json.content["misbehaving_node_id"] == ACCUSED
    assert as_json.content["block"] == {"number": 20, "hash": "0x" + scene.trusted_hash.hex()}
    found = {each["finding_id"]: each["verdict"] for each in as_json.content["findings"]}
    assert sorted(found.values()) == ["not proved"] * 3 + ["proved", "refuted"]


def test_verify__bundle_that_proves_nothing__ends_with_1(scene: BundleScene) -> None:
    scene.write_audit([scene.finding("ENVELOPE_MISSING", 5, None)])
    assert bundle(scene).code == 0

    assert verify(scene).code == 1


def test_verify__many_findings__tells_some_and_counts_all(scene: BundleScene) -> None:
    served = [
        replace(scene.post(3), sequence_id=100 + n).envelope(key_of(ACCUSED)) for n in range(30)
    ]
    findings = [scene.finding("ENVELOPE_INVENTED", 100 + n, each) for n, each in enumerate(served)]
    scene.write_audit([scene.altered(3), *findings])
    told = bundle(scene)

    outcome = verify(scene)

    assert outcome.out.count("\nfinding ") == 20
    assert outcome.out.index("\nproved  ") < outcome.out.index("\nnot proved")
    assert "… and 11 more findings; --json tells all" in outcome.out
    assert "findings        proved: 1, not proved: 30" in outcome.out
    assert "… and ENVELOPE_INVENTED 10; --json tells all" in told.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "missing --trust, or --rpc"),
        (("--trust", "12"), "expected a block hash"),
        (("--trust", "00" * 32, "--rpc", "http://127.0.0.1:1"), "one of --trust and --rpc"),
        (("--trust", "00" * 32, "--block", 3), "--block is for reports"),
    ],
)
def test_verify__options_that_fit_no_bundle__are_refused(
    scene: BundleScene, options: tuple[object, ...], words: str
) -> None:
    assert bundle(scene).code == 0

    outcome = run("council", "verify", scene.bundle, "--deployment", scene.record_path, *options)

    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_verify__another_hash_is_trusted__says_so_without_the_bundles_own(
    scene: BundleScene, options: tuple[str, ...]
) -> None:
    assert bundle(scene).code == 0
    trust = ("--trust", "00" * 32, "--deployment", scene.record_path)

    outcome = run("council", "verify", scene.bundle, *trust, *options)

    words = " ".join(outcome.err.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert "expected the hash of block 20, in which the bundle says that it ends, got 0x00" in words
    assert "take the hash of block 20 from a node or explorers of your choice" in words
    # Nobody can paste what is not printed, nor complete its beginning.
    assert scene.trusted_hash.hex()[:8] not in outcome.err


def test_verify__endpoint_from_the_environment__is_not_asked_where_a_hash_is_trusted(
    scene: BundleScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bundle(scene).code == 0
    monkeypatch.setenv("CHAINKIT_RPC", "http://127.0.0.1:1")

    assert verify(scene).code == 0


def test_verify__report_with_a_hash_and_without_an_endpoint__is_refused(scene: BundleScene) -> None:
    assert bundle(scene).code == 0
    report = next(scene.bundle.glob("reports/*"))
    deployment = ("--deployment", scene.record_path)

    trusting = run("council", "verify", report, "--trust", "00" * 32, *deployment)
    without = run("council", "verify", report, *deployment)

    assert (trusting.code, without.code) == (2, 2)
    assert "--trust is for bundles" in trusting.err
    assert "missing --rpc (or CHAINKIT_RPC)" in without.err


def test_verify__folder_that_is_no_bundle__could_not_be_checked(
    scene: BundleScene, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    deployment = ("--deployment", scene.record_path)

    outcome = run("council", "verify", tmp_path / "empty", "--trust", "00" * 32, *deployment)

    assert outcome.code == 2
    assert "bundle.json does not exist" in outcome.err


def test_verify__nothing_of_that_name__is_told_before_anything_else(
    scene: BundleScene, tmp_path: Path
) -> None:
    deployment = ("--deployment", scene.record_path)

    outcome = run("council", "verify", tmp_path / "tpyo", "--trust", "00" * 32, *deployment)

    assert outcome.code == 2
    assert "tpyo: expected a report or a bundle's folder, got none" in outcome.err


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_verify__no_regular_file__is_refused_at_once(
    scene: BundleScene, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "report.bin"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    options = ("--rpc", "http://127.0.0.1:1", "--deployment", scene.record_path)

    outcome = run("council", "verify", path, *options)

    assert outcome.code == 2
    assert "got a pipe or a device" in outcome.err
