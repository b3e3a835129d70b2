import errno
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from chainkit.errors import StoreError
from chainkit.exports import ExportWriter, Manifest, files_of, read_manifest
from chainkit.tables import ENVELOPES, QUARANTINE

SCHEMAS = {"envelopes": ENVELOPES, "quarantine": QUARANTINE}
ABOUT: dict[str, Any] = {
    "kind": "node",
    "chain_id": 31337,
    "genesis_hash": "0x" + "00" * 32,
    "contracts": {"GroupMessages": "0x" + "11" * 20},
    "from_block": 4,
    "to_block": 1204331,
    "to_block_hash": "0x" + "22" * 32,
    "node_public_key": "0x04" + "33" * 64,
}
BASE_ROW = {
    "originator_id": 0,
    "sequence_id": Decimal(1),
    "block_number": 4,
    "block_hash": b"b" * 32,
    "transaction_hash": b"t" * 32,
    "transaction_index": 0,
    "log_index": 0,
    "originator_ns": 1_735_689_600_000_000_000,
    "topic": b"\0" + b"g" * 32,
    "envelope": b"envelope",
}
ROWS = [BASE_ROW | {"sequence_id": Decimal(number)} for number in (1, 2, 2**64 - 1)]


def write_export(directory: Path, **about: Any) -> Manifest:
    with ExportWriter(directory, SCHEMAS) as writer:
        writer.write("envelopes", ROWS[:2])
        writer.write("envelopes", [])
        writer.write("envelopes", ROWS[2:])
        return writer.finish(**ABOUT | about)


def change_manifest(directory: Path, **changes: Any) -> None:
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def contents_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    write_export(tmp_path / "export")
    return tmp_path / "export"


# ------------------------------------------------------------------ writing


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


def test_write__folder_exists__is_refused_and_untouched(export: Path) -> None:
    before = contents_of(export)

    with pytest.raises(StoreError) as caught:
        ExportWriter(export, SCHEMAS)

    assert str(caught.value) == (
        f"export {export}: expected a folder that does not exist yet, got one"
    )
    assert contents_of(export) == before


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
        ExportWriter(tmp_path / "export", SCHEMAS) as writer,
    ):
        writer.write("envelopes", ROWS)
        raise RuntimeError("midway")

    assert list(tmp_path.iterdir()) == []


def test_write__never_finished__leaves_nothing_behind(tmp_path: Path) -> None:
    with ExportWriter(tmp_path / "export", SCHEMAS) as writer:
        writer.write("envelopes", ROWS)

    assert list(tmp_path.iterdir()) == []


def test_write__before_it_is_finished__is_not_visible(tmp_path: Path) -> None:
    with ExportWriter(tmp_path / "export", SCHEMAS) as writer:
        writer.write("envelopes", ROWS)
        assert not (tmp_path / "export").exists()
        writer.finish(**ABOUT)
        assert (tmp_path / "export").exists()

    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_write__after_a_killed_run_with_this_process_id__starts_afresh(tmp_path: Path) -> None:
    left_behind = tmp_path / f".export.{os.getpid()}.partial"
    left_behind.mkdir()
    (left_behind / "stray.parquet").write_text("")

    write_export(tmp_path / "export")

    assert [path.name for path in tmp_path.iterdir()] == ["export"]
    assert "stray.parquet" not in contents_of(tmp_path / "export")


def test_write__two_processes_to_one_name__first_wins_and_second_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExportWriter(tmp_path / "export", SCHEMAS) as slow:
        slow.write("envelopes", ROWS[:1])
        with monkeypatch.context() as other_process:
            other_process.setattr("os.getpid", lambda: 1)
            write_export(tmp_path / "export")
        slow.write("envelopes", ROWS[1:])
        with pytest.raises(StoreError, match="expected a folder that can be written, got Direct"):
            slow.finish(**ABOUT)

    assert [path.name for path in tmp_path.iterdir()] == ["export"]
    assert read_manifest(tmp_path / "export", "node").files["envelopes.parquet"]["rows"] == 3


@pytest.mark.parametrize(
    "change", [{"envelope": None}, {"block_number": 2**63}, {"topic": 5}, {"sequence_id": "x"}]
)
def test_write__row_that_the_schema_does_not_hold__is_refused_and_leaves_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    with (
        pytest.raises(StoreError, match="expected a folder that can be written"),
        ExportWriter(tmp_path / "export", SCHEMAS) as writer,
    ):
        writer.write("envelopes", [BASE_ROW | change])

    assert list(tmp_path.iterdir()) == []


def full_disk(writer: Any, *_: Any) -> None:
    writer.is_open = False
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["__init__", "write_table", "close"])
def test_write__disk_is_full__is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(pq.ParquetWriter, step, full_disk)

    with pytest.raises(StoreError, match="got No space left on device"):
        write_export(tmp_path / "export")

    assert list(tmp_path.iterdir()) == []


def test_write__fields_that_are_not_given__do_not_stand_in_the_manifest(export: Path) -> None:
    content = json.loads((export / "manifest.json").read_text())

    assert {"first_block", "sequence_before", "sequence_after"}.isdisjoint(content)


def test_write__chain_export_with_counters__gives_them_back(tmp_path: Path) -> None:
    about = {"first_block": 3, "sequence_before": 0, "sequence_after": 2**64 - 1}

    write_export(tmp_path / "export", kind="chain", node_public_key=None, **about)

    manifest = read_manifest(tmp_path / "export", "chain")
    assert {name: getattr(manifest, name) for name in about} == about


# ------------------------------------------------------------------ reading


def test_read__export_of_another_kind__says_both(export: Path) -> None:
    with pytest.raises(StoreError) as caught:
        read_manifest(export, "chain")

    assert str(caught.value) == f"export {export}: expected an export of kind chain, got node"


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

    assert str(caught.value) == (
        f"export file {export / name}: expected a readable file, got No such file or directory"
    )


def test_read__no_manifest__says_so(export: Path) -> None:
    (export / "manifest.json").unlink()

    with pytest.raises(StoreError, match=r"expected a folder with manifest\.json, got none"):
        read_manifest(export, "node")


def test_read__no_folder__says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"expected a folder with manifest\.json, got none"):
        read_manifest(tmp_path / "export", "node")


def test_read__file_in_place_of_the_folder__is_refused(tmp_path: Path) -> None:
    (tmp_path / "export").write_text("")

    with pytest.raises(StoreError, match=r"a readable manifest\.json"):
        read_manifest(tmp_path / "export", "node")


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


@pytest.mark.parametrize("format_", [0, 3, "1", "2", True, None])
def test_read__manifest_of_another_format__is_refused(export: Path, format_: Any) -> None:
    change_manifest(export, format=format_)

    with pytest.raises(StoreError, match="expected manifest format 2 or older"):
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
        ("sequence_after", 2**64),
    ],
)
def test_read__field_of_another_type_or_range__names_it(
    export: Path, field: str, value: Any
) -> None:
    change_manifest(export, **{field: value})

    with pytest.raises(StoreError, match=rf"expected {field}: .*, got .* \(manifest\.json\)"):
        read_manifest(export, "node")


def test_read__first_format__had_one_file_per_table_without_sizes(export: Path) -> None:
    files = read_manifest(export, "node").files
    older = {
        name: {"rows": about["rows"], "sha256": about["sha256"]} for name, about in files.items()
    }
    change_manifest(export, format=1, files=older)

    manifest = read_manifest(export, "node")

    assert manifest.files == older
    assert files_of(manifest, "envelopes") == ["envelopes.parquet"]


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

    with pytest.raises(StoreError, match=r"a readable manifest\.json"):
        read_manifest(export, "node")


def test_read__export_moved_elsewhere__is_still_proved(export: Path, tmp_path: Path) -> None:
    written = read_manifest(export, "node")
    shutil.move(export, tmp_path / "elsewhere")

    assert read_manifest(tmp_path / "elsewhere", "node") == written
