"""Arguments of the audit's commands that are refused, with what to give, before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit_jobs.adapters.faults import Fault, FaultCode
from chainkit_jobs.cli.import_chain import _echo_faults
from chainkit_jobs.cli.options import check_export_folder
from support.audit.bundles import record_content
from support.command_line import run


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "exports" / "chain"
    (folder / "blocks").mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    return folder


def test_check_export_folder__the_export_itself_or_nothing__is_left_to_its_reader(
    export: Path,
) -> None:
    check_export_folder(export)
    check_export_folder(export / "missing")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("chain/manifest.json", "a file within one: give {exports}/chain"),
        ("chain/blocks", "a folder within one: give {exports}/chain"),
        ("", "a folder of exports: give {exports}/chain"),
    ],
)
def test_check_export_folder__path_beside_the_export__says_what_to_give(
    export: Path, place: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_export_folder(export.parent / place)

    assert words.format(exports=export.parent) in str(refused.value)


def test_verify_chain__manifest_given__is_refused_before_spark_starts(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.cli.verify_chain.spark_session", None)
    trust = ("--trust", "00" * 32)

    outcome = run("audit", "verify-chain", "--chain", export / "manifest.json", *trust)

    assert outcome.code == 2
    assert f"a file within one: give {export}" in " ".join(outcome.err.split())


def test_import_chain__source_that_is_none__is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.cli.import_chain.spark_session", None)
    record = tmp_path / "record.json"
    record.write_text(json.dumps(record_content()))
    options = ("--source", tmp_path / "tpyo", "--deployment", record, "--out", tmp_path / "out")

    outcome = run("audit", "import-chain", "--format", "cryo", *options)

    assert outcome.code == 2
    assert "expected a folder with files of cryo, got none" in " ".join(outcome.err.split())


def test_import_chain__out_that_is_taken__is_refused_before_spark_starts(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chainkit_jobs.cli.import_chain.spark_session", None)
    record = export.parent / "record.json"
    record.write_text(json.dumps(record_content()))
    options = ("--source", export.parent, "--deployment", record, "--out", export.parent)

    outcome = run("audit", "import-chain", "--format", "cryo", *options)

    assert outcome.code == 2
    assert "expected an export, or an empty folder, got chain" in " ".join(outcome.err.split())


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    folder = tmp_path / "audits" / "monday"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("{}")
    (folder / "findings.parquet").touch()
    return folder


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("monday/findings.parquet", "a file within one: give {audits}/monday"),
        ("", "a folder of audits: give {audits}/monday"),
    ],
)
def test_bundle_and_report__path_beside_the_audit__say_what_to_give(
    audit: Path, export: Path, place: str, words: str
) -> None:
    path, out = audit.parent / place, ("--out", audit.parent / "out")
    keys = ("--finding", "0" * 16, "--keystore", audit.parent / "none.json")

    bundled = run("audit", "bundle", path, "--chain", export, *out)
    reported = run("audit", "report-misbehavior", "--findings", path, *keys, *out)

    for outcome in (bundled, reported):
        assert outcome.code == 2
        assert words.format(audits=audit.parent) in " ".join(outcome.err.split())


def test_bundle_and_report__manifest_given_as_the_chain__say_what_to_give(
    audit: Path, export: Path
) -> None:
    shared = ("--chain", export / "manifest.json", "--out", audit.parent / "out")
    keys = ("--finding", "0" * 16, "--keystore", audit.parent / "none.json")

    bundled = run("audit", "bundle", audit, *shared)
    reported = run("audit", "report-misbehavior", "--findings", audit, *keys, *shared)

    for outcome in (bundled, reported):
        assert outcome.code == 2
        assert f"a file within one: give {export}" in " ".join(outcome.err.split())


def test_import_chain__kinds_of_fault__are_counted_in_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = Fault(FaultCode.DUPLICATE_ROW, "logs", 1, 3, None, "one row", "2")

    _echo_faults((fault,))
    _echo_faults((fault, fault))

    told = [line for line in capsys.readouterr().out.splitlines() if "nothing was written" in line]
    assert told == ["1 kind of fault; nothing was written", "2 kinds of fault; nothing was written"]
