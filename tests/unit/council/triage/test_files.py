"""Bundles and reports in a folder count as evidence; all else is left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chainkit.council.triage import files as triage_files
from chainkit.council.triage.files import DEEPEST, find_evidence
from chainkit.errors import ConfigurationError


def write(path: Path, size: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def test_find__bundles_and_reports__wherever_they_lie(tmp_path: Path) -> None:
    write(tmp_path / "b" / "deep" / "report.pb", 7)
    write(tmp_path / "a.bin", 3)
    write(tmp_path / "bundle" / "bundle.json", 2)
    write(tmp_path / "bundle" / "headers.rlp", 11)
    write(tmp_path / "bundle" / "reports" / "id.pb")

    heap = find_evidence(tmp_path)

    assert [(each.source, each.is_bundle, each.size) for each in heap.pieces] == [
        ("a.bin", False, 3),
        ("b/deep/report.pb", False, 7),
        ("bundle", True, 11),
    ]
    assert not heap.others


def test_find__folder_that_is_a_bundle__hides_nothing_else_in_it(tmp_path: Path) -> None:
    write(tmp_path / "bundle.json")
    write(tmp_path / "headers.rlp")
    write(tmp_path / "reports" / "id.pb")
    write(tmp_path / "other.pb")
    write(tmp_path / "inner" / "bundle.json")

    bundle, inner, other = find_evidence(tmp_path).pieces

    assert (bundle.source, bundle.is_bundle, bundle.path) == (".", True, tmp_path)
    assert [(each.source, each.is_bundle) for each in (inner, other)] == [
        *(("inner", True), ("other.pb", False)),
    ]


def test_find__links_pipes_and_other_files__are_told_and_not_looked_at(tmp_path: Path) -> None:
    heap_folder, elsewhere = tmp_path / "heap", tmp_path / "elsewhere"
    write(elsewhere / "secret.pb")
    write(heap_folder / "notes.txt")
    (heap_folder / "link.pb").symlink_to(elsewhere / "secret.pb")
    (heap_folder / "folder").symlink_to(elsewhere)
    (heap_folder / "round").symlink_to(heap_folder)
    os.mkfifo(heap_folder / "pipe.pb")

    heap = find_evidence(heap_folder)

    assert not heap.pieces
    assert heap.others == {
        "folder": "a link, which is not followed",
        "link.pb": "a link, which is not followed",
        "notes.txt": "neither a bundle nor a report's file (*.pb, *.bin)",
        "pipe.pb": "no regular file",
        "round": "a link, which is not followed",
    }


def test_find__bundles_page_is_a_link__is_still_a_bundle_to_be_refused(tmp_path: Path) -> None:
    write(tmp_path / "a" / "report.pb")
    (tmp_path / "a" / "bundle.json").symlink_to(tmp_path / "nowhere")

    pieces = find_evidence(tmp_path).pieces

    assert [(each.source, each.is_bundle) for each in pieces] == [
        *(("a", True), ("a/report.pb", False)),
    ]


def test_find__folders_without_end__ends(tmp_path: Path) -> None:
    folders = ["d"] * (DEEPEST + 3)
    write(tmp_path.joinpath(*folders) / "report.pb")

    heap = find_evidence(tmp_path)

    assert not heap.pieces
    assert list(heap.others.values()) == [f"deeper than {DEEPEST} folders"]


def test_find__more_files_than_any_heap__is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triage_files, "MOST_FILES", 3)
    for number in range(4):
        write(tmp_path / f"{number}.pb")

    with pytest.raises(ConfigurationError, match="expected up to 3 files, got more"):
        find_evidence(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "file", "empty"])
def test_find__no_folder_or_nothing_in_it__is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "heap"
    if kind == "file":
        write(path)
    elif kind == "empty":
        path.mkdir()

    with pytest.raises(ConfigurationError, match="a folder of reports and bundles, got"):
        find_evidence(path)
