from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreError
from chainkit.exports import check_files, files_of
from support.audit.small_export import change_manifest
from support.exports import read_manifest

pytest_plugins = ["support.audit.export_fixtures"]

RANGES = ((4, 99), (100, 199), (200, 1204331))


def as_ranges(export: Path, *ranges: tuple[Any, ...]) -> None:
    """Make the one file of envelopes several, with what the manifest says of each."""
    about = read_manifest(export, "node").files["envelopes.parquet"]
    data = (export / "envelopes.parquet").read_bytes()
    (export / "envelopes").mkdir()
    files = {}
    for number, (first, last) in enumerate(ranges):
        name = f"envelopes/{number:010}-{number:010}.parquet"
        (export / name).write_bytes(data)
        place = {"from_block": first, "to_block": last, "finished": True}
        files[name] = about | {key: value for key, value in place.items() if value is not None}
    change_manifest(export, files=files)


def test_read__export_of_another_kind__says_both(export: Path) -> None:
    with pytest.raises(StoreError) as caught:
        read_manifest(export, "chain")

    assert str(caught.value) == f"export {export}: expected an export of kind chain, got node"


def test_read__files_that_are_right__tells_of_each(export: Path) -> None:
    told: list[int] = []

    manifest = read_manifest(export, "node")

    check_files(export, manifest, told.append)

    assert told == [1] * len(manifest.files)


def test_read__file_changed__says_both_digests(export: Path) -> None:
    digest = read_manifest(export, "node").files["envelopes.parquet"]["sha256"]
    path = export / "envelopes.parquet"
    path.write_bytes(path.read_bytes() + b"\0")

    with pytest.raises(StoreError) as caught:
        read_manifest(export, "node")

    assert caught.value.subject == f"export file {path}"
    assert caught.value.expected == f"sha256 {digest}"
    assert caught.value.got != digest


@pytest.mark.parametrize("name", ["envelopes.parquet", "quarantine.parquet"])
def test_read__file_missing__names_it(export: Path, name: str) -> None:
    (export / name).unlink()

    with pytest.raises(StoreError) as caught:
        read_manifest(export, "node")

    assert str(caught.value) == (f"export file {export / name} does not exist")


def test_read__no_manifest__says_so(export: Path) -> None:
    (export / "manifest.json").unlink()

    with pytest.raises(StoreError, match=r"expected a folder with manifest\.json, got none"):
        read_manifest(export, "node")


def test_read__no_folder__says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"expected a folder with manifest\.json, got none"):
        read_manifest(tmp_path / "export", "node")


def test_read__file_in_place_of_the_folder__is_refused(tmp_path: Path) -> None:
    (tmp_path / "export").write_text("")

    with pytest.raises(StoreError, match=r"got Not a directory \(manifest\.json\)"):
        read_manifest(tmp_path / "export", "node")


def test_read__export_moved_elsewhere__is_still_proved(export: Path, tmp_path: Path) -> None:
    written = read_manifest(export, "node")
    shutil.move(export, tmp_path / "elsewhere")

    assert read_manifest(tmp_path / "elsewhere", "node") == written


def test_read__first_format__had_one_file_per_table_without_sizes(export: Path) -> None:
    files = read_manifest(export, "node").files
    older = {
        name: {"rows": about["rows"], "sha256": about["sha256"]} for name, about in files.items()
    }
    change_manifest(export, format=1, files=older)

    manifest = read_manifest(export, "node")

    assert manifest.files == older
    assert files_of(manifest, "envelopes") == ["envelopes.parquet"]


def test_read__ranges_of_blocks__come_in_their_order(export: Path) -> None:
    as_ranges(export, *RANGES)

    manifest = read_manifest(export, "node")

    names = files_of(manifest, "envelopes")
    assert [manifest.files[name]["from_block"] for name in names] == [4, 100, 200]
    assert files_of(manifest, "quarantine") == []


@pytest.mark.parametrize(
    "ranges",
    [
        RANGES[1:],
        RANGES[:2],
        (RANGES[0], RANGES[2]),
        (RANGES[0], *RANGES),
        (RANGES[1], RANGES[0], RANGES[2]),
        ((4, 1204332),),
        ((None, None),),
        ((4, None),),
    ],
    ids=["late", "cut", "gap", "twice", "mixed up", "beyond", "of no blocks", "without end"],
)
def test_read__ranges_that_do_not_cover_the_export__are_refused(
    export: Path, ranges: tuple[Any, ...]
) -> None:
    as_ranges(export, *ranges)

    with pytest.raises(StoreError, match="expected envelopes: ranges from 4 to 1204331 without"):
        read_manifest(export, "node")


def test_check__other_rows_than_the_file_has__are_told_of_a_chain_only(export: Path) -> None:
    manifest = read_manifest(export, "node")
    about = manifest.files["envelopes.parquet"]
    files = {"envelopes.parquet": about | {"rows": about["rows"] + 1}}

    check_files(export, replace(manifest, files=files))
    with pytest.raises(StoreError) as caught:
        check_files(export, replace(manifest, files=files, kind="chain"))

    expected = f"rows of {export / 'envelopes.parquet'}: expected {about['rows']}, as the file has"
    assert str(caught.value) == f"{expected}, got {about['rows'] + 1} (manifest.json)"
