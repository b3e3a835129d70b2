import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.exports import TableWriter
from chainkit.exports.tables import LOGS


def logs(sizes: Iterable[int]) -> pa.Table:
    """Return logs with so many bytes of data each."""
    rows = [
        {
            "block_number": 1,
            "block_hash": b"\x01" * 32,
            "transaction_hash": number.to_bytes(32),
            "transaction_index": number,
            "log_index": number,
            "address": b"\x02" * 20,
            "topics": [b"\x03" * 32],
            "data": number.to_bytes(4) * (size // 4),
        }
        for number, size in enumerate(sizes)
    ]
    return pa.Table.from_pylist(rows, schema=LOGS)


def groups_of(path: Path) -> list[int]:
    with pq.ParquetFile(path) as file:
        return [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]


def cut(table: pa.Table, chance: random.Random) -> Iterator[pa.Table]:
    while table.num_rows:
        rows = chance.randint(1, 7)
        yield table.slice(0, rows)
        table = table.slice(rows)


def test_table_writer__a_table__is_read_back_without_dictionaries_that_do_not_help(
    tmp_path: Path,
) -> None:
    table = logs([160] * 100)

    with TableWriter(tmp_path / "logs.parquet", LOGS) as writer:
        writer.append(table)

    assert writer.rows == 100
    with pq.ParquetFile(tmp_path / "logs.parquet") as file:
        assert file.read().equals(table)
        group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == {
        *("block_number", "block_hash", "transaction_index", "log_index", "address"),
        "topics.list.element",
    }


@given(st.lists(st.integers(0, 99), max_size=40), st.randoms(use_true_random=False))
def test_table_writer__tables_cut_anywhere__give_the_same_bytes(
    sizes: list[int], chance: random.Random
) -> None:
    table = logs(sizes)

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr("chainkit.exports.parquet._GROUP_ROWS", 9)
        patch.setattr("chainkit.exports.parquet._GROUP_BYTES", 900)
        patch.setattr("chainkit.exports.parquet._PIECE_ROWS", 3)
        whole, parts = Path(folder, "whole"), Path(folder, "parts")
        with TableWriter(whole, LOGS) as writer:
            writer.append(table)
        with TableWriter(parts, LOGS) as writer:
            for part in cut(table, chance):
                writer.append(part)
        assert parts.read_bytes() == whole.read_bytes()
        assert pq.read_table(whole).equals(table)


def test_table_writer__row_groups__end_where_they_have_enough_rows_or_bytes(
    tmp_path: Path,
) -> None:
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    with TableWriter(small, LOGS) as writer:
        for _ in range(23):
            writer.append(logs([32] * 1_000))
    with TableWriter(large, LOGS) as writer:
        for _ in range(5):
            writer.append(logs([8 * 1_024] * 1_000))

    assert groups_of(small) == [10_000, 10_000, 3_000]
    assert groups_of(large) == [2_100, 2_100, 800]


def test_table_writer__left_with_an_error__says_that_one(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        TableWriter(tmp_path / "logs.parquet", LOGS) as writer,
    ):
        writer.append(logs([32]))
        raise ZeroDivisionError

    assert groups_of(tmp_path / "logs.parquet") == []
