from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports import parquet_writer
from chainkit.tables import LOGS


def test_parquet_writer__a_table__is_read_back_without_dictionaries_that_do_not_help(
    tmp_path: Path,
) -> None:
    def row(number: int) -> dict[str, object]:
        return {
            "block_number": 1,
            "block_hash": b"\x01" * 32,
            "transaction_hash": number.to_bytes(32),
            "transaction_index": number,
            "log_index": number,
            "address": b"\x02" * 20,
            "topics": [b"\x03" * 32],
            "data": number.to_bytes(160),
        }

    table = pa.Table.from_pylist([row(number) for number in range(100)], schema=LOGS)

    with parquet_writer(tmp_path / "logs.parquet", LOGS) as writer:
        writer.write_table(table)

    with pq.ParquetFile(tmp_path / "logs.parquet") as file:
        assert file.read().equals(table)
        group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == {
        *("block_number", "block_hash", "transaction_index", "log_index", "address"),
        "topics.list.element",
    }
