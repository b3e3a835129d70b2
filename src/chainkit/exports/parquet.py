"""Writes the Parquet files of exports so that reading them back is fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_HARDLY_REPEATED: Final = frozenset(
    {
        "data",
        "envelope",
        "hash",
        "input",
        "parent_hash",
        "payload",
        "r",
        "s",
        "sequence_id",
        "transaction_hash",
    }
)
"""Columns whose values differ from row to row: a dictionary of such a column holds most of a row
group, and each value is then found by way of the dictionary."""


_GROUP_ROWS: Final = 10_000
_GROUP_BYTES: Final = 16 * 2**20
_PIECE_ROWS: Final = 100
"""A row group ends with the piece that fills it. Audits read group by group, and the fixed cost of
a group equals that of a thousand rows. A piece is held whole, and a payload may be as large as a
block allows."""


class TableWriter:
    """Writes a file of an export: the same rows give the same bytes, however they come."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """Open the file. Raises OSError where that is impossible."""
        self.rows = 0
        """Rows of all tables that were appended."""
        self._file = _parquet_file(path, schema)
        self._rest = schema.empty_table()
        """Less than a piece."""
        self._group: list[pa.Table] = []
        self._group_rows = self._group_bytes = 0

    def __enter__(self) -> Self:
        """Return this writer."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file, or its written part."""
        if error is None:
            self.close()
        else:
            self.abandon()

    def append(self, table: pa.Table) -> None:
        """Add rows. Raises OSError or ArrowException where the file cannot be written."""
        self.rows += table.num_rows
        waiting = pa.concat_tables([self._rest, table])
        while waiting.num_rows >= _PIECE_ROWS:
            self._add(waiting.slice(0, _PIECE_ROWS))
            waiting = waiting.slice(_PIECE_ROWS)
        self._rest = waiting

    def close(self) -> None:
        """Write what waits, and close the file. Raises OSError or ArrowException."""
        if self._rest.num_rows:
            self._add(self._rest)
        if self._group:
            self._write_group()
        self._file.close()

    def abandon(self) -> None:
        """Close the file without the waiting rows; the file is of no use."""
        # Closing writes, too: on a full disk that fails once more.
        with suppress(OSError, pa.ArrowException):
            self._file.close()

    def _add(self, piece: pa.Table) -> None:
        self._group.append(piece)
        self._group_rows += piece.num_rows
        self._group_bytes += _bytes(piece)
        if self._group_rows >= _GROUP_ROWS or self._group_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        # Pieces cut as they came would give another file.
        group = pa.concat_tables(self._group).combine_chunks()
        self._file.write_table(group, row_group_size=self._group_rows)
        self._group.clear()
        self._group_rows = self._group_bytes = 0


def _bytes(table: pa.Table) -> int:
    """Return the bytes of what may be large. Arrow's own count depends on where a slice begins."""
    large = [column for column in table.columns if pa.types.is_binary(column.type)]
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in large)


def _parquet_file(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a Parquet file.

    Most bytes are ciphertext, hashes and signatures, which no codec makes smaller: Zstandard at its
    fastest level removes the zeros between them, and takes half the time of Parquet's usual Snappy
    to read.
    """
    repeated = [
        leaf for field in schema if field.name not in _HARDLY_REPEATED for leaf in _leaves(field)
    ]
    # LZ4 is faster still, but parquet-java 1.17.0 cannot read larger pages of it (its issue 3478).
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=-5,
        use_dictionary=repeated,
        # A column of a row group is one page: reading several smaller pages takes a tenth longer.
        data_page_size=_GROUP_BYTES,
    )


def _leaves(field: pa.Field) -> Iterator[str]:
    """Yield the paths of a field's columns as Parquet names them."""
    if pa.types.is_list(field.type):
        inner = [field.type.value_field.with_name("list.element")]
    elif pa.types.is_struct(field.type):
        inner = list(field.type)
    else:
        yield field.name
        return
    for each in inner:
        yield from (f"{field.name}.{leaf}" for leaf in _leaves(each))
