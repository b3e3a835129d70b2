from __future__ import annotations

import errno
import gc
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit.exports import ExportFolder, Manifest
from chainkit.exports.tables import QUARANTINE
from support.audit.export_folders import write_folder
from support.audit.small_export import ABOUT, BASE_ROW, ROWS, SCHEMAS, write_export
from support.exports import read_manifest

pytest_plugins = ["support.audit.export_fixtures"]


def contents_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_write__rows_in_parts__come_back_with_their_manifest(tmp_path: Path) -> None:
    written = write_export(tmp_path / "export")

    manifest = read_manifest(tmp_path / "export", "node")

    assert manifest == written
    assert {name: getattr(manifest, name) for name in ABOUT} == ABOUT
    assert {name: about["rows"] for name, about in manifest.files.items()} == {
        "envelopes.parquet": 3,
        "quarantine.parquet": 0,
    }
    assert pq.read_table(tmp_path / "export/envelopes.parquet").to_pylist() == ROWS
    empty = pq.read_table(tmp_path / "export/quarantine.parquet")
    assert empty.num_rows == 0
    assert empty.schema.equals(QUARANTINE)


def test_write__chain_export__has_no_node_key(tmp_path: Path) -> None:
    write_export(tmp_path / "export", kind="chain", node_public_key=None)

    assert read_manifest(tmp_path / "export", "chain").node_public_key is None


def test_write__same_rows_twice__gives_the_same_bytes(tmp_path: Path) -> None:
    write_export(tmp_path / "first")
    write_export(tmp_path / "second")

    first = contents_of(tmp_path / "first")
    assert sorted(first) == ["envelopes.parquet", "manifest.json", "quarantine.parquet"]
    assert contents_of(tmp_path / "second") == first


def test_write__below_a_file__says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match="expected a folder that can be written, got Not a dir"):
        write_export(tmp_path / "file" / "export")


def test_write__below_folders_that_do_not_exist__makes_them(tmp_path: Path) -> None:
    write_export(tmp_path / "a" / "b" / "export")

    assert read_manifest(tmp_path / "a" / "b" / "export", "node").chain_id == 31337


def test_write__exception_midway__leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="midway"),
        ExportFolder(tmp_path / "export", "node", SCHEMAS) as folder,
    ):
        folder.write("envelopes", SCHEMAS["envelopes"], [], is_finished=True)
        raise RuntimeError("midway")

    assert list(tmp_path.iterdir()) == []


def test_write__second_process_at_once__is_refused(tmp_path: Path) -> None:
    with (
        ExportFolder(tmp_path / "export", "node", SCHEMAS),
        pytest.raises(StoreError, match="a folder that nobody writes to, got another export"),
    ):
        write_export(tmp_path / "export")


def test_write__published_twice__keeps_what_both_list(tmp_path: Path) -> None:
    with ExportFolder(tmp_path / "export", "node", SCHEMAS) as folder:
        first = dict([folder.write("envelopes", SCHEMAS["envelopes"], [], is_finished=True)])
        folder.publish(Manifest(files=first, **ABOUT))
        assert read_manifest(tmp_path / "export", "node").files == first
        both = first | dict([folder.write("quarantine", SCHEMAS["quarantine"], [], True)])
        folder.publish(Manifest(files=both, **ABOUT))

    assert read_manifest(tmp_path / "export", "node").files == both
    assert set(contents_of(tmp_path / "export")) == {"manifest.json", *both}


@pytest.mark.parametrize(
    "change", [{"envelope": None}, {"block_number": 2**63}, {"topic": 5}, {"sequence_id": "x"}]
)
def test_write__row_that_the_schema_does_not_hold__is_refused_and_leaves_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with pytest.raises(StoreError, match="expected a folder that can be written"):
        write_folder(
            tmp_path / "export",
            SCHEMAS,
            {"envelopes": [[BASE_ROW | change]], "quarantine": []},
            **ABOUT,
        )

    assert list(tmp_path.iterdir()) == []


def full_disk(writer: Any, *_: Any, **__: Any) -> None:
    writer.is_open = False
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["__init__", "write_table", "close"])
def test_write__disk_is_full__is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    # A writer that another test left behind must not be finalised with the method of this one.
    gc.collect()
    monkeypatch.setattr(pq.ParquetWriter, step, full_disk)

    with pytest.raises(StoreError, match="got No space left on device"):
        write_export(tmp_path / "export")

    # Nor does ours leave one behind: pytest tells of what a finaliser raises.
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_write__fields_that_are_not_given__do_not_stand_in_the_manifest(export: Path) -> None:
    content = json.loads((export / "manifest.json").read_text())

    assert {"first_block", "sequence_before", "sequence_after"}.isdisjoint(content)


def test_write__chain_export_with_counters__gives_them_back(tmp_path: Path) -> None:
    about = {"first_block": 3, "sequence_before": 0, "sequence_after": 2**64 - 1}

    write_export(tmp_path / "export", kind="chain", node_public_key=None, **about)

    manifest = read_manifest(tmp_path / "export", "chain")
    assert {name: getattr(manifest, name) for name in about} == about
