"""`chainkit council triage` on bundles, with no network: what it prints, and its exit codes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chainkit.cli.council.triage_output import default_reason, echo_ranking
from chainkit.council.proposal.grounds import LONGEST_REASON, check_reason
from chainkit.council.triage.ranking import rank
from chainkit.types import BlockReference
from support.audit.audit_exports import key_of
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    REPORTED_AT,
    REPORTER,
    BundleScene,
    Reporter,
    bundle_scene,
)
from support.command_line import Outcome, run
from support.council.triage import AUDITOR, liveness_report, proof, registered, roll, tells
from support.project import ROOT

ESCAPE = "\x1b[2J"
GUIDE = ROOT / "docs" / "triage.md"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BundleScene:
    monkeypatch.delenv("CHAINKIT_RPC", raising=False)
    return bundle_scene(tmp_path)


def put_bundle(scene: BundleScene, heap: Path, name: str, key: object = REPORTER) -> None:
    scene.write(reporter=Reporter(REPORTED_AT, key), out=name)  # type: ignore[arg-type]
    shutil.move(scene.root / name / f"node-{ACCUSED}", heap / name)


def triage(scene: BundleScene, heap: Path, *options: object) -> Outcome:
    trust = ("--trust", "0x" + scene.trusted_hash.hex())
    return run("council", "triage", heap, *trust, "--deployment", scene.record_path, *options)


def test_triage__two_bundles_of_one_node__is_one_line_to_disable_it(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, "a")
    put_bundle(scene, heap, "b", AUDITOR)
    put_bundle(scene, heap, "c", None)
    (heap / f"{ESCAPE}.pb").write_bytes(ESCAPE.encode())

    outcome = triage(scene, heap)

    assert outcome.code == 1
    assert "   200  unknown   critical       1        0          0  disable: one" in outcome.out
    assert "\n  c\n      proved, but nobody signed a report of it\n" in outcome.out
    assert "\n  \\x1b[2J.pb\n" in outcome.out
    assert outcome.out.endswith("disable         node 200\n")
    assert outcome.out.replace("\n", "").isprintable()
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_triage__json__says_the_same_to_scripts(scene: BundleScene, heap: Path) -> None:
    put_bundle(scene, heap, "a")

    content = triage(scene, heap, "--json").content

    assert (content["disable"], content["block"], content["complete"]) == ([ACCUSED], None, True)
    (node,) = content["nodes"]
    assert (node["status"], node["severity"], node["action"]) == ("unknown", "critical", "disable")
    assert node["grounds"] == ["a"]
    (kind,) = node["types"]
    assert (kind["type"], kind["name"], kind["proved"]) == (8, "BLOCKCHAIN_INCONSISTENCY", 1)
    assert kind["reporters"][0]["public_key"] == "0x" + REPORTER.public_key.hex()
    assert content["not_counted"] == []
    assert content["proposal"] is None


def test_triage__proof_without_a_signature__is_nothing_to_do(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, "a", None)

    outcome = triage(scene, heap)

    assert outcome.code == 0
    assert "wait: proved, but no report counts" in outcome.out
    assert outcome.out.endswith("disable         none\n")


def test_triage__what_could_not_be_checked__is_2_unless_a_proof_stands_beside_it(
    scene: BundleScene, heap: Path
) -> None:
    (heap / "report.pb").write_bytes(liveness_report(ACCUSED, key_of(OTHER)))
    alone = triage(scene, heap)
    put_bundle(scene, heap, "a")

    assert (alone.code, triage(scene, heap).code) == (2, 1)
    assert "caution         not everything could be checked" in alone.out


def test_triage__bundles_of_several_blocks__each_needs_its_hash(
    scene: BundleScene, heap: Path
) -> None:
    put_bundle(scene, heap, "a")
    other = "0x" + "11" * 32

    assert triage(scene, heap, "--trust", other).code == 1
    only_other = ("--trust", other, "--deployment", scene.record_path)
    outcome = run("council", "triage", heap, *only_other)
    assert outcome.code == 2
    words = " ".join(outcome.out.split())
    assert "no --trust is the hash of block 20, in which it says that it ends" in words
    assert "take that from a node or explorers of your choice" in words
    # A hash that the bundle gives would be pasted back.
    as_json = run("council", "triage", heap, *only_other, "--json")
    assert scene.trusted_hash.hex()[:8] not in outcome.out + outcome.err + as_json.out


def test_triage__long_list_of_what_is_not_counted__is_cut_for_people_alone(
    scene: BundleScene, heap: Path
) -> None:
    for number in range(30):
        (heap / f"{number}.pb").write_bytes(b"")

    outcome = triage(scene, heap)

    assert outcome.code == 0
    assert "  … and 10 more; --json tells all\n" in outcome.out
    assert len(triage(scene, heap, "--json").content["not_counted"]) == 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "missing --trust, or --rpc (or CHAINKIT_RPC)"),
        (("--trust", "0x12"), "expected a block hash"),
        (("--trust", "11" * 32, "--rpc", "http://127.0.0.1:1"), "expected one of --trust and"),
        (("--trust", "11" * 32, "--propose", "p.json"), "--propose needs --rpc"),
        (("--rpc", "http://127.0.0.1:1", "--propose", "p.json"), "missing --council"),
        (("--trust", "11" * 32, "--reporters", "0"), "not in the range x>=1"),
    ],
)
def test_triage__options_that_do_not_go_together__are_refused(
    scene: BundleScene,
    heap: Path,
    options: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CHAINKIT_COUNCIL", raising=False)
    outcome = run("council", "triage", heap, "--deployment", scene.record_path, *options)

    assert outcome.code == 2
    assert words in outcome.err


def test_triage__endpoint_of_the_environment__does_not_stand_against_trust(
    scene: BundleScene, heap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINKIT_RPC", "http://127.0.0.1:1")
    put_bundle(scene, heap, "a")

    assert triage(scene, heap).code == 1


def test_triage__proposal_file_exists__is_refused_before_anything_is_checked(
    scene: BundleScene, heap: Path, tmp_path: Path
) -> None:
    path = tmp_path / "proposal.json"
    path.write_text("mine")
    where = ("--rpc", "http://127.0.0.1:1", "--council", "council.json", "--propose", path)

    outcome = run("council", "triage", heap, *where, "--deployment", scene.record_path)

    assert outcome.code == 2
    assert "expected a new file, got one that exists" in outcome.err
    assert path.read_text() == "mine"


def test_triage__folder_that_is_none__could_not_be_checked(
    scene: BundleScene, tmp_path: Path
) -> None:
    outcome = triage(scene, tmp_path / "missing")

    assert outcome.code == 2
    assert "expected a folder of reports and bundles, got none" in outcome.err


def test_triage__example_of_the_guide__is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claims = [
        proof(300, b"one", reporter=key_of(200), source="bundle"),
        *(proof(300, b"one", source=name) for name in ("first.pb", "more/copy.pb")),
        *(tells(100, 400, number) for number in range(2)),
    ]
    ranking = rank(claims, [], roll(100, registered(200, is_enabled=False), 300, 400), 3)
    guide = GUIDE.read_text()

    echo_ranking(ranking, BlockReference(40, bytes.fromhex("28ce7bff") + bytes(28)))

    start = "$ chainkit council triage evidence\n"
    example = guide.partition(start)[2].partition("$ chainkit")[0]
    assert capsys.readouterr().out == example
    assert f"for example, `{default_reason(ranking.to_disable)}`" in " ".join(guide.split())


# ------------------------------------------------------------------ the proposal's reason


def test_reason__of_a_proof__names_type_and_reporters() -> None:
    claims = [
        proof(300, b"one", reporter=key_of(200)),
        proof(300, b"one", reporter=key_of(100), source="b"),
    ]

    nodes = rank(claims, [], roll(100, 200, 300), 3).to_disable

    words = "node 300: BLOCKCHAIN_INCONSISTENCY, proved by 2 reporters"
    assert check_reason(default_reason(nodes)) == words


def test_reason__of_liveness__says_reported() -> None:
    nodes = rank([tells(300, 100)], [], roll(100, 300), 1).to_disable

    assert default_reason(nodes) == "node 300: UNRESPONSIVE_NODE, reported by 1 reporter"


def test_reason__of_many_nodes__fits_a_proposal() -> None:
    claims = [proof(node_id, b"one") for node_id in range(100, 2100, 100)]

    nodes = rank(claims, [], roll(*range(100, 2100, 100)), 3).to_disable

    assert len(check_reason(default_reason(nodes))) <= LONGEST_REASON
    assert default_reason(nodes).startswith("20 nodes")


def test_reason__disabled_node__is_not_in_it() -> None:
    claims = [proof(300, b"one"), replace(proof(200, b"one"), source="b")]

    nodes = rank(claims, [], roll(300, registered(200, is_enabled=False)), 3).to_disable

    assert "200" not in default_reason(nodes)
