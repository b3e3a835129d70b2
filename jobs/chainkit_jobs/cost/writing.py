"""Tables of any length as Parquet and JSON Lines: the same rows give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from chainkit_jobs.cost.ratios import ratio
from chainkit_jobs.cost.schema import RATIOS, SORTED_BY, TABLES

Row = dict[str, Any]

_ROWS_AT_ONCE: Final = 10_000


def table_rows(name: str, frame: DataFrame) -> Iterator[Row]:
    """Return the rows of a table in order, complete with ratios, a partition at a time."""
    keys = SORTED_BY[name]
    ordered = frame.orderBy(*keys) if keys else frame
    for row in ordered.toLocalIterator():
        yield complete_row(TABLES[name], row.asDict())


def complete_row(schema: pa.Schema, values: Mapping[str, Any]) -> Row:
    """Return the columns of a schema: those from Spark, and the ratios computed from them."""
    row = {name: _plain(values[name]) for name in schema.names if name not in RATIOS}
    for name in schema.names:
        if name in RATIOS:
            numerator, denominator, digits = RATIOS[name]
            above, below = row[numerator], row[denominator]
            has_both = above is not None and below is not None
            row[name] = ratio(int(above), int(below), digits) if has_both else None
    return {name: row[name] for name in schema.names}


def write_table(directory: Path, name: str, rows: Iterable[Row]) -> int:
    """Write ``<name>.parquet`` and ``<name>.jsonl``; return the number of rows.

    Raises OSError where the disk takes no more.
    """
    schema, count = TABLES[name], 0
    with (
        pq.ParquetWriter(directory / f"{name}.parquet", schema) as parquet,
        (directory / f"{name}.jsonl").open("w", encoding="utf-8") as lines,
    ):
        for chunk in _chunks(rows):
            parquet.write_table(pa.Table.from_pylist(chunk, schema=schema))
            lines.writelines(f"{json_text(row)}\n" for row in chunk)
            count += len(chunk)
    return count


def json_text(content: Any, indent: int | None = None) -> str:
    """Return JSON with sorted keys: bytes as 0x hex, decimals as text (readers round numbers)."""
    return json.dumps(content, indent=indent, sort_keys=True, default=_json_value)


def _json_value(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"no JSON for {type(value)}")


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, _ROWS_AT_ONCE)):
        yield chunk
