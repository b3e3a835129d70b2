"""A Parquet file is accepted only if Arrow and Spark read it in the same way."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chainkit.exports import columns_problem
from chainkit.exports.tables import ENVELOPES
from support.audit.small_export import ROWS

TABLE = pa.Table.from_pylist(ROWS, schema=ENVELOPES)


def renamed(name: str) -> pa.Table:
    return TABLE.rename_columns([name if each == "envelope" else each for each in ENVELOPES.names])


def retyped(name: str, type_: pa.DataType, value: Any) -> pa.Table:
    values = pa.array([value] * len(TABLE), type_)
    return TABLE.set_column(ENVELOPES.names.index(name), name, values)


READ: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "as written": (TABLE, {}),
    "nullable": (TABLE.cast(pa.schema([f.with_nullable(True) for f in ENVELOPES])), {}),
    "another column": (TABLE.append_column("strange", pa.array([1, 2, 3])), {}),
    "other order": (TABLE.select(ENVELOPES.names[::-1]), {}),
    "plain": (TABLE, {"use_dictionary": False}),
    "snappy": (TABLE, {"compression": "snappy"}),
    "gzip": (TABLE, {"compression": "gzip"}),
    "second page version": (TABLE, {"data_page_version": "2.0"}),
    "deltas": (
        TABLE,
        {"use_dictionary": False, "column_encoding": {"envelope": "DELTA_BYTE_ARRAY"}},
    ),
    "split bytes": (
        TABLE,
        {"use_dictionary": False, "column_encoding": {"log_index": "BYTE_STREAM_SPLIT"}},
    ),
}

REFUSED: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "other case": (renamed("Envelope"), {}, "a column envelope, Envelope"),
    "no column": (TABLE.drop_columns(["envelope"]), {}, "envelope of type binary, none"),
    "twice": (
        TABLE.append_column("ENVELOPE", TABLE["envelope"]),
        {},
        "envelope of type binary, binary and binary",
    ),
    "large binary": (
        retyped("envelope", pa.large_binary(), b"e"),
        {},
        "envelope of type binary, large_binary",
    ),
    "int32": (retyped("log_index", pa.int32(), 1), {}, "log_index of type int64, int32"),
    "small decimal": (
        retyped("sequence_id", pa.decimal128(10, 0), Decimal(1)),
        {"store_decimal_as_integer": True},
        "sequence_id of type decimal128(20, 0), decimal128(10, 0)",
    ),
    "nested": (
        retyped("envelope", pa.list_(pa.binary()), [b"e"]),
        {},
        "envelope of type binary, list<element: binary>",
    ),
    "brotli": (
        TABLE,
        {"compression": "brotli"},
        "originator_id compressed by UNCOMPRESSED, SNAPPY, GZIP, ZSTD, BROTLI",
    ),
    "lz4": (
        TABLE,
        {"compression": {"topic": "lz4"}},
        "topic compressed by UNCOMPRESSED, SNAPPY, GZIP, ZSTD, LZ4",
    ),
}


@pytest.mark.parametrize("case", READ)
def test_columns__any_form_that_is_read_everywhere__have_no_problem(
    tmp_path: Path, case: str
) -> None:
    table, options = READ[case]
    pq.write_table(table, tmp_path / "a.parquet", **options)

    assert columns_problem(tmp_path / "a.parquet", ENVELOPES) is None


@pytest.mark.parametrize("case", REFUSED)
def test_columns__any_other__say_what_was_expected_and_what_was_found(
    tmp_path: Path, case: str
) -> None:
    table, options, words = REFUSED[case]
    pq.write_table(table, tmp_path / "a.parquet", **options)

    assert ", ".join(columns_problem(tmp_path / "a.parquet", ENVELOPES) or ()) == words


def renamed_in_bytes(content: bytes) -> bytes:
    return content.replace(b"envelope", b"envel\xff\x1be")


@pytest.mark.parametrize(
    "change",
    [lambda content: b"", lambda content: b"PAR1", lambda content: content[:-9], renamed_in_bytes],
    ids=["empty", "mark only", "cut", "a name that is no text"],
)
def test_columns__no_parquet__say_so_on_one_printable_line(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    path.write_bytes(change(path.read_bytes()))

    problem = columns_problem(path, ENVELOPES)

    assert problem is not None
    assert problem[1].isprintable()
