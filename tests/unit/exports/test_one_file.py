import json
import os
from pathlib import Path

import pytest

from chainkit.errors import StoreError
from chainkit.exports.tables import BLOCKS
from support.audit.export_folders import write_folder
from support.exports import read_manifest


def write_export(directory: Path) -> None:
    write_folder(
        directory,
        {"blocks": BLOCKS},
        {"blocks": []},
        kind="chain",
        chain_id=31337,
        genesis_hash="0x" + "00" * 32,
        contracts={},
        from_block=4,
        to_block=9,
        to_block_hash="0x" + "22" * 32,
    )


@pytest.fixture
def export(tmp_path: Path) -> Path:
    write_export(tmp_path / "export")
    return tmp_path / "export"


def list_too(export: Path, name: str) -> None:
    """Let the manifest list the one file under another name, too."""
    path = export / "manifest.json"
    content = json.loads(path.read_text())
    content["files"][name] = content["files"]["blocks.parquet"]
    (export / name).parent.mkdir(exist_ok=True)
    (export / name).write_bytes((export / "blocks.parquet").read_bytes())
    path.write_text(json.dumps(content))


def test_read__table_in_two_whole_files__is_refused(export: Path) -> None:
    list_too(export, "blocks.0123456789abcdef.parquet")

    with pytest.raises(StoreError, match="expected blocks: ranges from 4 to 9 without a gap"):
        read_manifest(export, "chain")


@pytest.mark.parametrize("name", ["blöcke.parquet", "blocks/٠-١.parquet"])
def test_read__file_name_beyond_ascii__is_refused(export: Path, name: str) -> None:
    list_too(export, name)

    with pytest.raises(StoreError, match="expected files: Parquet files"):
        read_manifest(export, "chain")


def test_write__power_fails_after_the_last_move__all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    flushed_before: dict[str, list[str]] = {}
    replace = Path.replace

    def noted(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def replaced(self: Path, target: Path) -> Path:
        flushed_before[target.name] = flushed.copy()
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "replace", replaced)

    write_export(tmp_path / "export")

    assert "0.parquet" in flushed_before["blocks.parquet"]
    # The manifest takes its place when the files are there under their names.
    assert flushed_before["manifest.json"] == ["0.parquet", "export", "manifest.json"]
    assert flushed[-1] == "export"
