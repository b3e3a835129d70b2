"""Checks by its footer alone whether a Parquet file of any origin can be read.

Several programs read an export: Arrow, Spark, and others. A file that they do not all read in the
same way is refused before any of them reads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports.tables import COLUMNS_SINCE_FORMAT_6
from chainkit.text.printable import printable

PARQUET_ERRORS: Final = (OSError, ValueError, pa.ArrowException)
"""The errors that Arrow raises for a file of another writer: names need not be UTF-8."""

CODECS: Final = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD")
"""Compressions that an export may have. Spark comes without Brotli, and fails on some LZ4."""

_MOST_SHOWN: Final = 300
"""Characters of a stranger's words that a sentence repeats."""


Problem = tuple[str, str]
"""The words for what was expected, and for what was found."""


def columns_problem(path: Path, schema: pa.Schema) -> Problem | None:
    """Return why a file cannot be read as some columns; None where it can. More columns may follow.

    Columns that came with a later format may be missing: all readers take them for nulls. The file
    was proved: it is a regular one (see exports.check_files).
    """
    try:
        with pq.ParquetFile(path) as file:
            return _problem(file.metadata, file.schema_arrow, schema)
    except PARQUET_ERRORS as error:
        return "Parquet", one_line(error)


def one_line(error: object) -> str:
    """Return a library's message about a stranger's file: on one line, printable and short."""
    # Our own errors end in their only non-ASCII character where they were cut.
    text = printable(" ".join(str(error).replace("…", "...").split()))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _problem(metadata: pq.FileMetaData, found: pa.Schema, expected: pa.Schema) -> Problem | None:
    for field in expected:
        # Spark ignores case in names, and fills missing columns with nulls.
        like = [other for other in found if other.name.lower() == field.name]
        types = [str(other.type) for other in like]
        if not types and field.name in COLUMNS_SINCE_FORMAT_6:
            continue
        if types == [str(field.type)] and like[0].name != field.name:
            return f"a column {field.name}", like[0].name
        if types != [str(field.type)]:
            got = one_line(" and ".join(types) or "none")
            return f"{field.name} of type {field.type}", got
    wanted = {field.name: _physical(field.type) for field in expected}
    for index in range(metadata.num_columns):
        column = metadata.schema.column(index)
        name = column.path.split(".")[0]
        if name not in wanted:
            continue
        if wanted[name] not in (None, column.physical_type):
            return f"{name} stored as {wanted[name]}", column.physical_type
        if (problem := _chunks_problem(metadata, index, name)) is not None:
            return problem
    return None


def _physical(type_: pa.DataType) -> str | None:
    """Return Parquet's own type for a column; None for lists, whose leaves have several."""
    if pa.types.is_nested(type_):
        return None
    if pa.types.is_boolean(type_):
        return "BOOLEAN"
    if pa.types.is_decimal(type_):
        return "FIXED_LEN_BYTE_ARRAY"
    return "INT64" if pa.types.is_int64(type_) else "BYTE_ARRAY"


def _chunks_problem(metadata: pq.FileMetaData, index: int, name: str) -> Problem | None:
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(index)
        if chunk.compression not in CODECS:
            return f"{name} compressed by {', '.join(CODECS)}", chunk.compression
    return None
