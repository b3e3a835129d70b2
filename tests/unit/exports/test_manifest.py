from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chainkit.errors import StoreError
from support.audit.small_export import ABOUT, change_manifest, write_export
from support.exports import read_manifest

pytest_plugins = ["support.audit.export_fixtures"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"7", b'"text"', b"null", b"{}"],
    ids=["empty", "cut", "no UTF-8", "list", "number", "text", "null", "no fields"],
)
def test_read__manifest_that_is_none__is_refused(export: Path, content: bytes) -> None:
    (export / "manifest.json").write_bytes(content)

    with pytest.raises(StoreError, match="manifest"):
        read_manifest(export, "node")


@pytest.mark.parametrize("field", [*(name for name in ABOUT if name != "node_public_key"), "files"])
def test_read__field_of_the_manifest_missing__names_it(export: Path, field: str) -> None:
    path = export / "manifest.json"
    content = json.loads(path.read_text())
    del content[field]
    path.write_text(json.dumps(content))

    with pytest.raises(StoreError, match=f"expected a complete manifest, got .*'{field}'"):
        read_manifest(export, "node")


def test_read__manifest_with_an_unknown_field__is_refused(export: Path) -> None:
    change_manifest(export, surprise=1)

    with pytest.raises(StoreError, match="'surprise'"):
        read_manifest(export, "node")


@pytest.mark.parametrize("format_", [0, 9, "1", "3", True, None])
def test_read__manifest_of_another_format__is_refused(export: Path, format_: Any) -> None:
    change_manifest(export, format=format_)

    with pytest.raises(StoreError, match="expected manifest format 8 or older"):
        read_manifest(export, "node")


@pytest.mark.parametrize(
    "files",
    [
        [],
        None,
        {"envelopes.parquet": {}},
        {"envelopes.parquet": None},
        {"envelopes.parquet": {"rows": 3, "sha256": None}},
    ],
    ids=["list", "null", "no digest", "null for a file", "null for a digest"],
)
def test_read__manifest_with_malformed_files__is_refused(export: Path, files: Any) -> None:
    change_manifest(export, files=files)

    with pytest.raises(StoreError):
        read_manifest(export, "node")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", ["node"]),
        ("chain_id", "31337"),
        ("chain_id", True),
        ("genesis_hash", None),
        ("genesis_hash", "0x" + "0" * 63),
        ("contracts", ["x"]),
        ("contracts", {"GroupMessages": 5}),
        ("contracts", {"GroupMessages": "0x" + "1g" * 20}),
        ("contracts", {"\x1b[2J": "0x" + "11" * 20}),
        ("from_block", None),
        ("from_block", -1),
        ("from_block", 2**63),
        ("to_block", "12"),
        ("to_block", 12.0),
        ("to_block_hash", None),
        ("node_public_key", 5),
        ("node_public_key", "0x04"),
        ("files", {"../manifest.json": {"sha256": "0" * 64}}),
        ("first_block", 2**63),
        ("sequence_before", "0"),
        ("payload_contracts", [{"name": "messages"}]),
        ("counters", {"0": {"before": 0, "after": -1}}),
        ("counters", {"-1": {"before": 0, "after": 1}}),
        ("sequence_after", 2**64),
        ("established", {}),
        ("established", [{"from_block": 1, "to_block": 2}]),
        ("established", [{"from_block": 1, "to_block": 2, "how": "by magic"}]),
        ("established", [{"from_block": 2, "to_block": 1, "how": "receipts"}]),
        ("established", 2 * [{"from_block": 1, "to_block": 1, "how": "receipts"}]),
        ("established", [{"from_block": 1, "to_block": 2**62, "how": "receipts"}]),
    ],
)
def test_read__field_of_another_type_or_range__names_it(
    export: Path, field: str, value: Any
) -> None:
    change_manifest(export, **{field: value})

    with pytest.raises(StoreError, match=rf"expected {field}: .*, got .* \(manifest\.json\)"):
        read_manifest(export, "node")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": -1},
        {"rows": True},
        {"bytes": "3"},
        {"from_block": 2**63},
        {"finished": 1},
        {"surprise": 1},
    ],
)
def test_read__file_described_otherwise__is_refused(export: Path, change: dict[str, Any]) -> None:
    files = read_manifest(export, "node").files
    change_manifest(export, files={name: {**about, **change} for name, about in files.items()})

    with pytest.raises(StoreError, match="expected files: Parquet files"):
        read_manifest(export, "node")


@pytest.mark.parametrize(
    "name",
    [
        "envelopes/../x.parquet",
        "/envelopes.parquet",
        "a/b/0-1.parquet",
        "envelopes/0-1.txt",
        ".parquet",
    ],
)
def test_read__file_name_that_leads_elsewhere__is_refused(export: Path, name: str) -> None:
    about = read_manifest(export, "node").files["envelopes.parquet"]
    change_manifest(export, files={name: about})

    with pytest.raises(StoreError, match="expected files: Parquet files"):
        read_manifest(export, "node")


@pytest.mark.parametrize(
    "registry",
    [
        {},
        {"chain_id": 1},
        [],
        {"chain_id": 1, "address": "0x", "block_number": 1, "block_hash": "0x"},
    ],
)
def test_read__registry_that_is_none__is_refused(export: Path, registry: Any) -> None:
    change_manifest(export, registry=registry)

    with pytest.raises(StoreError, match="expected registry: "):
        read_manifest(export, "node")


def test_read__manifest_nested_without_end__is_refused(export: Path) -> None:
    (export / "manifest.json").write_text("[" * 100_000)

    with pytest.raises(StoreError, match="JSON of up to 32 lists and objects"):
        read_manifest(export, "node")


@pytest.mark.parametrize("text", ["{", "", "\ufeff{}", '{"format": NaN'])
def test_read__manifest_that_is_no_json__is_refused(export: Path, text: str) -> None:
    (export / "manifest.json").write_text(text)

    with pytest.raises(StoreError, match=r"expected JSON, got .* \(manifest\.json\)"):
        read_manifest(export, "node")


def test_read__manifest_with_a_field_twice__is_refused(export: Path) -> None:
    path = export / "manifest.json"
    path.write_text(path.read_text().replace("{", '{"kind": "chain",', 1))

    with pytest.raises(StoreError, match=r"got 'kind' twice \(manifest\.json\)"):
        read_manifest(export, "node")


def test_read__pipe_in_place_of_the_manifest__is_refused_at_once(export: Path) -> None:
    (export / "manifest.json").unlink()
    os.mkfifo(export / "manifest.json")

    with pytest.raises(StoreError, match=r"got a pipe or a device \(manifest\.json\)"):
        read_manifest(export, "node")


def test_write__node_answers__have_a_format_that_an_older_reader_refuses(tmp_path: Path) -> None:
    write_export(tmp_path / "own")
    write_export(tmp_path / "asked", answered_to=2**64 - 1)

    formats = [
        json.loads((tmp_path / name / "manifest.json").read_text())["format"]
        for name in ("own", "asked")
    ]
    assert formats == [4, 5]
    read = read_manifest(tmp_path / "asked", "node")
    assert (read.answered_to, read.is_of_answers) == (2**64 - 1, True)


@pytest.mark.parametrize("answered_to", [-1, 2**64, "8", True, 1.5])
def test_read__answered_to_is_no_sequence__is_refused(export: Path, answered_to: Any) -> None:
    change_manifest(export, answered_to=answered_to)

    with pytest.raises(StoreError, match="answered_to: an integer from 0 below 2"):
        read_manifest(export, "node")
