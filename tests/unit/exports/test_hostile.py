"""A node's folder may hold anything: nothing in it is waited for, and nothing beside it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chainkit.errors import StoreError
from support.audit.small_export import change_manifest
from support.exports import read_manifest

pytest_plugins = ["support.audit.export_fixtures"]

TABLE = "envelopes.parquet"


def leads_out(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(elsewhere)


def leads_in_a_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def hole(path: Path) -> None:
    os.truncate(path, 2**36 + 1)


KINDS: dict[Callable[[Path], None], str] = {
    pipe: "got a pipe or a device",
    device: "got a link out of it",
    leads_out: "got a link out of it",
    leads_in_a_circle: "got (links in a circle|a link out of it|Too many levels)",
    folder: "got a folder",
    hole: "expected at most",
}


@pytest.mark.parametrize("name", [TABLE, "manifest.json"])
@pytest.mark.parametrize("change", KINDS, ids=lambda change: change.__name__)
def test_read__no_regular_file_of_the_folder__is_refused_at_once(
    export: Path, name: str, change: Callable[[Path], None]
) -> None:
    change(export / name)

    with pytest.raises(StoreError, match=KINDS[change]):
        read_manifest(export, "node")


def test_read__folder_of_a_table_lies_elsewhere__is_refused(export: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (export / TABLE).rename(tmp_path / "elsewhere" / "0-1.parquet")
    (export / "envelopes").symlink_to(tmp_path / "elsewhere")
    about = {"rows": 3, "sha256": "0" * 64, "from_block": 4, "to_block": 1204331}
    change_manifest(export, files={"envelopes/0-1.parquet": about})

    with pytest.raises(StoreError, match="expected a file in this folder, got a link out of it"):
        read_manifest(export, "node")


def test_read__link_within_the_folder__is_read(export: Path) -> None:
    (export / TABLE).rename(export / "kept")
    (export / TABLE).symlink_to("kept")

    assert TABLE in read_manifest(export, "node").files


def test_read__files_of_a_chain_export_elsewhere__are_the_auditors_own(
    export: Path, tmp_path: Path
) -> None:
    change_manifest(export, kind="chain", node_public_key=None)
    leads_out(export / TABLE)

    assert TABLE in read_manifest(export, "chain").files


def test_read__pipe_in_a_chain_export__is_refused_at_once(export: Path) -> None:
    change_manifest(export, kind="chain", node_public_key=None)
    pipe(export / TABLE)

    with pytest.raises(StoreError, match="got a pipe or a device"):
        read_manifest(export, "chain")
