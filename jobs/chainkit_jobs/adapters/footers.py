"""Reads a Parquet file's footer, before Spark reads the file: its columns' types, and their codecs.

Spark's reader of rows returns NULL or another number for a type that does not fit, and its workers'
Java ends at a codec that it lacks: every file first passes ``column_types``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.errors import StoreError

READ_CODECS: Final = ("SNAPPY", "GZIP", "ZSTD", "LZ4", "UNCOMPRESSED")
"""The codecs that Spark reads, by Parquet's names."""

REWRITE: Final = "write the file again by pyarrow, polars or DuckDB, compressed by zstd"
"""Advice about a codec that is not read."""

_SPELLINGS: Final[tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...]] = (
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
)


def column_types(path: Path, subject: str, names: Iterable[str]) -> Mapping[str, pa.DataType]:
    """Return the types of a file's columns, of those among ``names`` that the file has.

    Arrow has several types for one column of Parquet, and each writer records its own:
    ``plain_type`` of them is returned. Raises StoreError, which begins with ``subject``, where the
    file is no Parquet, or has a column with a codec that Spark does not read.
    """
    try:
        # Spark writes timestamps as Parquet's oldest type, which holds any unit.
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            schema, metadata = file.schema_arrow, file.metadata
    except (OSError, pa.ArrowException) as error:
        raise StoreError(subject, "Parquet", error) from error
    found = {name: plain_type(schema.field(name).type) for name in names if name in schema.names}
    _check_codecs(metadata, subject, found)
    return found


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return one Arrow type for several that are equal in Parquet: string for large_string.

    A dictionary is an encoding of values, and no other type.
    """
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(plain_type(type_.value_type))
    return next((plain for is_spelling, plain in _SPELLINGS if is_spelling(type_)), type_)


def _check_codecs(metadata: pq.FileMetaData, subject: str, names: Iterable[str]) -> None:
    wanted = set(names)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            # A list's column is below the list's name.
            name = column.path_in_schema.split(".")[0]
            if name in wanted and column.compression not in READ_CODECS:
                expected = f"{name} compressed by one of {', '.join(READ_CODECS)}"
                raise StoreError(subject, expected, column.compression, REWRITE)
