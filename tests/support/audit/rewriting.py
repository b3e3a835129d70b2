"""Parquet files written again by other tools: equal values, in each tool's encoding."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from chainkit_jobs.adapters.footers import READ_CODECS

Rewrite = Callable[[Path, str, bool], None]
"""Takes a file, a codec and whether values are kept in dictionaries."""


def _table(path: Path) -> pa.Table:
    # Else Parquet's oldest type of timestamps becomes nanoseconds, which are refused.
    return pq.read_table(path, partitioning=None, coerce_int96_timestamp_unit="us")


def by_pyarrow(path: Path, codec: str, dictionary: bool) -> None:
    compression = "none" if codec == "UNCOMPRESSED" else codec
    table = _table(path)
    pq.write_table(table, path, compression=compression, use_dictionary=dictionary)


def by_pyarrow_without_a_note(path: Path, codec: str, dictionary: bool) -> None:
    compression = "none" if codec == "UNCOMPRESSED" else codec
    table = _table(path)
    options = {"use_dictionary": dictionary, "store_schema": False}
    pq.write_table(table, path, compression=compression, **options)


def by_polars(path: Path, codec: str, dictionary: bool) -> None:
    frame = pl.from_arrow(_table(path))
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression=codec.lower())


def by_duckdb(path: Path, codec: str, dictionary: bool) -> None:
    name = "lz4_raw" if codec == "LZ4" else codec.lower()
    limit = "" if dictionary else ", dictionary_size_limit 1"
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        # From file to file, DuckDB 2.0.0 refuses text columns of cryo that hold NULLs:
        # "map key column is not allowed to contain NULL values".
        connection.register("source", _table(path))
        connection.execute(f"copy source to '{path}' (format parquet, codec '{name}'{limit})")


REWRITERS: dict[str, Rewrite] = {
    "pyarrow": by_pyarrow,
    "pyarrow without a note": by_pyarrow_without_a_note,
    "polars": by_polars,
    "duckdb": by_duckdb,
}


def rewrite_each(folder: Path) -> None:
    """Write the files of a folder again, by each tool, codec and dictionary in turn."""
    ways = [
        (rewrite, codec, dictionary)
        for dictionary in (True, False)
        for codec in READ_CODECS
        for rewrite in REWRITERS.values()
    ]
    for path, (rewrite, codec, dictionary) in zip(
        sorted(folder.rglob("*.parquet")), cycle(ways), strict=False
    ):
        rewrite(path, codec, dictionary)
