from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.cursor import cursor_findings
from support.audit.audit_exports import base_posts, key_of
from support.audit.node_tables import honest_tables, journal_row, write_tables

KEY = key_of(100)


def written(directory: Path, **about: Any) -> NodeExport:
    return write_tables(directory / "node", 100, KEY, honest_tables(base_posts(), KEY), **about)


def problems(node: NodeExport) -> list[str]:
    return [row["detail"] for row in cursor_findings(node)]


def with_files(node: NodeExport, **changes: Any) -> NodeExport:
    """Return the export with other words about its envelopes in the manifest."""
    files = {
        name: dict(about) | (changes if name == "envelopes.parquet" else {})
        for name, about in node.manifest.files.items()
    }
    manifest = replace(node.manifest, files=files)
    return replace(node, export=replace(node.export, manifest=manifest))


@pytest.mark.parametrize("final_block", [None, 0, 20])
def test_cursor__honest__nothing_is_found(tmp_path: Path, final_block: int | None) -> None:
    assert problems(written(tmp_path, final_block=final_block)) == []


def test_cursor__final_block_beyond_the_last__is_found(tmp_path: Path) -> None:
    [row] = cursor_findings(written(tmp_path, final_block=21))

    assert row["detail"] == "final_block: expected up to to_block, 20, got 21"
    assert (row["code"], row["node_id"]) == ("NODE_CURSOR_CONTRADICTS", 100)


@pytest.mark.parametrize(
    ("final_block", "problem"),
    [
        (20, None),
        (19, "envelopes.parquet: finished up to block 20, with final_block 19"),
        # It does not say what is final: nothing is contradicted.
        (None, None),
    ],
)
def test_cursor__finished_range__is_final(
    tmp_path: Path, final_block: int | None, problem: str | None
) -> None:
    node = written(tmp_path, final_block=final_block)

    found = problems(with_files(node, from_block=1, to_block=20, finished=True))

    assert found == ([] if problem is None else [problem])


def test_cursor__unfinished_range_above_the_final_block__is_as_it_should_be(
    tmp_path: Path,
) -> None:
    node = written(tmp_path, final_block=3)

    assert problems(with_files(node, from_block=1, to_block=20, finished=False)) == []


def test_cursor__another_number_of_rows__is_found(tmp_path: Path) -> None:
    expected = "envelopes.parquet: expected 8 rows, as its manifest says, got 7"

    assert problems(with_files(written(tmp_path), rows=8)) == [expected]


def test_cursor__the_same_in_several_files__is_told_once(tmp_path: Path) -> None:
    # Payloads, and a malformed one in block 13.
    node = written(tmp_path, to_block=12)

    first = "envelopes.parquet: expected rows of blocks 1 to 12, got 10 to 17"
    assert problems(node) == [f"{first} (the first of 2 files)"]


@pytest.mark.parametrize(
    ("first", "last", "is_found"), [(10, 17, False), (11, 17, True), (10, 16, True)]
)
def test_cursor__rows_outside_their_range__are_found(
    tmp_path: Path, first: int, last: int, is_found: bool
) -> None:
    found = problems(with_files(written(tmp_path), from_block=first, to_block=last))

    expected = f"envelopes.parquet: expected rows of blocks {first} to {last}, got 10 to 17"
    assert found == ([expected] if is_found else [])


@pytest.mark.parametrize(("last_reorg", "is_found"), [(2, False), (3, False), (1, True)])
def test_cursor__journal_of_a_later_reorg__is_found(
    tmp_path: Path, last_reorg: int, is_found: bool
) -> None:
    post = base_posts()[0]
    entries = [journal_row(post, KEY, "kept", reorg_id=n) for n in (1, 2)]
    rows = honest_tables(base_posts(), KEY) | {"journal": entries}

    found = problems(write_tables(tmp_path / "node", 100, KEY, rows, last_reorg=last_reorg))

    expected = "journal.parquet: expected reorgs 1 to 1, its last_reorg, got 1 to 2"
    assert found == ([expected] if is_found else [])


def test_cursor__footer_without_statistics__tells_nothing(tmp_path: Path) -> None:
    node = written(tmp_path, to_block=16)
    path = node.export.directory / "envelopes.parquet"
    assert len(problems(node)) == 1

    pq.write_table(pq.read_table(path), path, write_statistics=False)

    assert problems(node) == []


def test_cursor__empty_table__has_no_bounds(tmp_path: Path) -> None:
    assert problems(write_tables(tmp_path / "node", 100, KEY, {"envelopes": []})) == []


@pytest.mark.parametrize("type_", [pa.string(), pa.binary(), pa.float64()])
def test_cursor__column_of_another_type__is_left_to_the_comparison_of_its_table(
    tmp_path: Path, type_: pa.DataType
) -> None:
    node = written(tmp_path)
    path = node.export.directory / "quarantine.parquet"
    table = pq.read_table(path)
    place = table.schema.names.index("block_number")
    values = table["block_number"].cast(pa.string() if type_ == pa.binary() else type_)
    pq.write_table(table.set_column(place, "block_number", values.cast(type_)), path)

    assert problems(node) == []
