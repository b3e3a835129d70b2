"""How the Parquet files of exports are written: so that reading them back takes little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
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
"""Columns whose values differ from row to row: a dictionary of them holds most of a row group, and
each value is then found by way of it."""


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Open a file for the tables of an export. Raises OSError where that is impossible.

    Most of its bytes are ciphertext, hashes and signatures, which no codec makes smaller: Zstandard
    in haste finds the zeros between them, and is read in half the time of Parquet's usual Snappy.
    """
    repeated = [
        leaf for field in schema if field.name not in _HARDLY_REPEATED for leaf in _leaves(field)
    ]
    # Of LZ4, faster still, parquet-java 1.17.0 cannot read larger pages (its issue 3478).
    return pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=-5, use_dictionary=repeated
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
