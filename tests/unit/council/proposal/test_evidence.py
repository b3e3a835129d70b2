"""A proposal keeps evidence as it was read, though strangers write to its folders meanwhile."""

import hashlib
import os
from pathlib import Path
from typing import Any

import click
import pytest

from chainkit.cli.change.evidence import read_exhibit
from chainkit.cli.change.proposing import TermsOptions, write_proposal
from chainkit.cli.council import triage as triage_command
from chainkit.council.proposal import Evidence, Grounds, write_council
from chainkit.council.proposal.grounds import LONGEST_NAME, MOST_EVIDENCE
from chainkit.council.triage.ranking import rank
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.evidence import bundle as bundles
from support.audit.audit_exports import key_of
from support.audit.bundles import BundleScene, copied
from support.council.proposals import RECORD, SAFE, disable, grounds
from support.council.triage import liveness_report, proof, roll

pytest_plugins = ["support.audit.bundle_fixtures"]


@pytest.fixture
def bundle(sealed: BundleScene, tmp_path: Path) -> Path:
    return copied(sealed, tmp_path / "scene").bundle


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.pb"
    path.write_bytes(REPORT)
    return path


REPORT = liveness_report(300, key_of(100))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_evidence__bundle_and_report__have_the_digests_of_their_files(
    bundle: Path, report: Path
) -> None:
    page = (bundle / "bundle.json").read_bytes()

    assert read_exhibit(bundle).evidence == Evidence(bundle.name, sha256(page))
    assert read_exhibit(report).evidence == Evidence("report.pb", sha256(REPORT))


def test_evidence__bundle_swapped_after_it_was_parsed__has_the_digest_of_what_was(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = bundle / "bundle.json"
    honest, parse = page.read_bytes(), bundles.parse_bundle

    def swapping(data: bytes) -> Any:
        page.write_bytes(b"{}")
        return parse(data)

    monkeypatch.setattr(bundles, "parse_bundle", swapping)

    assert read_exhibit(bundle).evidence.sha256 == sha256(honest)


def test_evidence__name_with_runs_of_blanks__shows_them(tmp_path: Path) -> None:
    path = tmp_path / " a   b "
    path.write_bytes(REPORT)

    assert read_exhibit(path).evidence.name == r"\x20a \x20\x20b\x20"


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff"])
def test_evidence__neither_bundle_nor_report__is_refused(
    bundle: Path, report: Path, content: bytes
) -> None:
    (bundle / "bundle.json").write_bytes(content)
    report.write_bytes(content)

    for path in (bundle, report):
        with pytest.raises(MalformedData):
            read_exhibit(path)


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_evidence__no_regular_file__is_refused_at_once(
    bundle: Path, report: Path, kind: str, tmp_path: Path
) -> None:
    for path in (bundle / "bundle.json", report):
        if kind == "link":
            path.rename(tmp_path / path.stem)
            path.symlink_to(tmp_path / path.stem)
            continue
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")

    for path in (bundle, report):
        with pytest.raises(ConfigurationError, match="a readable file, no link"):
            read_exhibit(path)


def test_evidence__link_to_a_bundles_folder__is_not_followed(bundle: Path, tmp_path: Path) -> None:
    link = tmp_path / "node-300"
    link.symlink_to(bundle)

    with pytest.raises(ConfigurationError, match="no link"):
        read_exhibit(link)


def test_evidence__report_larger_than_any__is_refused(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit.cli.change.evidence.LARGEST_REPORT", len(REPORT) - 1)

    with pytest.raises(MalformedData, match="up to"):
        read_exhibit(report)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("r\x1b[2J\u202e.pb", r"r\x1b[2J\u202e.pb"),
        ("n" * LONGEST_NAME, "n" * LONGEST_NAME),
        ("n" * (LONGEST_NAME + 1), "n" * (LONGEST_NAME - 3) + "..."),
        ("\u202e" * 80, (r"\u202e" * 17)[: LONGEST_NAME - 3] + "..."),
    ],
    ids=["escapes", "the longest", "longer", "longer once it is printable"],
)
def test_evidence__name_of_a_strangers__is_one_that_a_proposal_holds(
    tmp_path: Path, name: str, kept: str
) -> None:
    path = tmp_path / name
    path.write_bytes(REPORT)

    found = read_exhibit(path).evidence

    assert found.name == kept
    content = grounds(evidence=(found,)).content()
    assert Grounds.parse(content, "grounds").evidence == (found,)


def test_evidence__current_folder__is_called_by_its_name(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bundle)

    assert read_exhibit(Path(".")).evidence.name == bundle.name


def test_write__more_evidence_than_a_proposal_holds__is_a_wrong_use(tmp_path: Path) -> None:
    council = tmp_path / "council.json"
    write_council(council, SAFE)
    paths = (tmp_path / "report.pb",) * (MOST_EVIDENCE + 1)
    terms = TermsOptions(council, "x", paths, days=7, nonce=None, no_tracing=False)

    with pytest.raises(click.UsageError, match=f"up to {MOST_EVIDENCE} pieces"):
        write_proposal(
            None,  # type: ignore[arg-type]
            RECORD,
            [disable()],
            tmp_path / "proposal.json",
            terms,
        )


def test_triage__more_evidence_than_a_proposal_holds__names_some_of_each_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [
        proof(node_id, bytes([number]), source=f"{node_id}-{number}")
        for node_id in (300, 400, 500)
        for number in range(9)
    ]
    nodes = rank(claims, [], roll(100, 300, 400, 500), 3).to_disable

    named = triage_command._grounds(tmp_path, nodes, others=2)

    assert [path.name for path in named[:4]] == ["300-0", "400-0", "500-0", "300-1"]
    assert len(named) == MOST_EVIDENCE - 2
    assert "names 18 of 27 pieces of evidence" in capsys.readouterr().err


def test_evidence__report_that_is_not_there__is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_exhibit(tmp_path / "report.pb")


def test_evidence__folder_above_the_bundles__says_what_is_wanted(bundle: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="expected a report, or a bundle's folder, got a folder without"
    ):
        read_exhibit(bundle.parent)
