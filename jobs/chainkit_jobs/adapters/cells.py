"""From the cells of other tools to canonical ones, as Spark columns: a value, or what is wrong.

Each function takes the name of a source's column and returns a Cell; a ``required`` one may not be
null. Nothing is guessed: hex without 0x, upper-case hex, hex digits stored as bytes, a number with
a fraction or one that does not fit are faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type

from chainkit.exports import tables
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.faults import FAULT_TYPE, FaultCode

_SHOWN: Final = 40
"""Characters of a wrong value that a fault repeats."""

_LARGEST: Final = {
    pa.int64(): 2**63 - 1,
    tables.UINT64: 2**64 - 1,
    tables.WEI: 10**38 - 1,
}
"""The integer types of chainkit.exports.tables. None holds a negative value."""

_ANY_WHOLE: Final = "decimal(38,0)"


@dataclass(frozen=True, slots=True)
class Cell:
    """A canonical cell."""

    value: Column
    """Null where the source has none, or a wrong one."""
    fault: Column
    """Of FAULT_TYPE, null where it is fine."""


def fault(code: FaultCode, expected: str, got: Column) -> Column:
    """Return what is wrong with a cell; ``got`` is anything that can become a string."""
    shown = sf.substring(got.cast("string"), 1, _SHOWN)
    return sf.struct(
        sf.lit(str(code)).alias("code"),
        sf.lit(expected).alias("expected"),
        sf.coalesce(shown, sf.lit("nothing")).alias("got"),
    ).cast(FAULT_TYPE)


def unknown(type_: pa.DataType) -> Cell:
    """Return the cell of what a source never tells, or a type has not."""
    return Cell(sf.lit(None).cast(from_arrow_type(type_)), sf.lit(None).cast(FAULT_TYPE))


def hex_text(name: str, length: int | None = None, required: bool = True) -> Cell:
    """Convert text with 0x and lower-case digits to ``length`` bytes, or to any number of them."""
    text = sf.col(name)
    expected = f"{name}: {_bytes(length)} as 0x and lower-case hex digits"
    code, wrong_length = FaultCode.WRONG_ENCODING, FaultCode.WRONG_LENGTH
    problems = [(~text.rlike(r"\A0x([0-9a-f]{2})*\z"), fault(code, expected, text))]
    if length is not None:
        problems.append((sf.length(text) != 2 + 2 * length, fault(wrong_length, expected, text)))
    value = sf.try_to_binary(sf.substring(text, 3, 2**31 - 1), sf.lit("hex"))
    return _cell(name, value, problems, required)


def raw_bytes(name: str, length: int | None = None, required: bool = True) -> Cell:
    """Take ``length`` bytes, or any number of them, as they are.

    Only a value of fixed length can be told from its own hex digits.
    """
    value = sf.col(name)
    if length is None:
        return _cell(name, value, [], required)
    expected = f"{name}: {_bytes(length)}"
    # Not as UTF-8, which need not be what it is: one character for each byte.
    text = sf.decode(value, "ISO-8859-1")
    is_hex = sf.length(value).isin(2 * length, 2 * length + 2) & text.rlike(
        r"\A(0x)?[0-9a-fA-F]*\z"
    )
    return _cell(
        name,
        value,
        [
            (is_hex, fault(FaultCode.WRONG_ENCODING, expected, text)),
            (
                sf.length(value) != length,
                fault(
                    FaultCode.WRONG_LENGTH,
                    expected,
                    sf.format_string("%d bytes", sf.length(value)),
                ),
            ),
        ],
        required,
    )


def whole_number(name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert an integer or decimal column to int64, UINT64 or WEI."""
    value = sf.col(name)
    expected = f"{name}: {_numbers(type_)}"
    whole = sf.floor(value)
    is_outside = (value < 0) | (whole > _largest(type_))
    return _cell(
        name,
        value.try_cast(from_arrow_type(type_)),
        [
            (whole != value, fault(FaultCode.WRONG_ENCODING, expected, value)),
            (is_outside, fault(FaultCode.OUT_OF_RANGE, expected, value)),
        ],
        required,
    )


def number_text(name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert decimal digits in a text column to int64, UINT64 or WEI."""
    text = sf.col(name)
    expected = f"{name}: {_numbers(type_)} as decimal digits"
    number = text.try_cast(_ANY_WHOLE)
    largest = _largest(type_)
    return _cell(
        name,
        number.try_cast(from_arrow_type(type_)),
        [
            (~text.rlike(r"\A-?[0-9]+\z"), fault(FaultCode.WRONG_ENCODING, expected, text)),
            (
                text.startswith("-") | number.isNull() | (number > largest),
                fault(FaultCode.OUT_OF_RANGE, expected, text),
            ),
        ],
        required,
    )


def canonical_rows(
    frame: DataFrame,
    table: str,
    cells: Mapping[str, Cell],
    source_file: Column,
    *row_faults: Column,
    row_chain_id: Column | None = None,
) -> DataFrame:
    """Return the rows of a SourceTables frame.

    ``cells`` are by canonical column name; columns without one are null. ``row_faults`` are of
    FAULT_TYPE and count before those of the cells, in their order. ``row_chain_id`` is an integer.
    """
    schema = CHAIN_TABLES[table]
    if strangers := cells.keys() - set(schema.names):
        raise ValueError(f"{table} has no {', '.join(sorted(strangers))}")
    cells = {field.name: unknown(field.type) for field in schema} | dict(cells)
    columns = [
        cells[field.name].value.cast(from_arrow_type(field.type)).alias(field.name)
        for field in schema
    ]
    faults = [*row_faults, *(cell.fault for cell in cells.values())]
    chain_id = sf.lit(None) if row_chain_id is None else row_chain_id
    return frame.select(
        *columns,
        source_file.alias("source_file"),
        chain_id.cast(_ANY_WHOLE).alias("row_chain_id"),
        sf.coalesce(*faults).alias("fault"),
    )


def relative_path(directory: Path) -> Column:
    """Return the name of the file that a row was read from, relative to the source folder.

    For frames of Spark's own file readers.
    """
    # Spark gives a URI, whose plus stands for itself.
    encoded = sf.replace(sf.col("_metadata.file_path"), sf.lit("+"), sf.lit("%2B"))
    path = sf.regexp_replace(sf.url_decode(encoded), "^file:/+", "/")
    return sf.substring(path, len(str(directory.resolve())) + 2, 2**31 - 1)


def _cell(name: str, value: Column, problems: list[tuple[Column, Column]], required: bool) -> Cell:
    source = sf.col(name)
    wrong = sf.lit(None).cast(FAULT_TYPE)
    for condition, problem in reversed(problems):
        wrong = sf.when(condition, problem).otherwise(wrong)
    missing = fault(FaultCode.MISSING_VALUE, f"{name}: a value", sf.lit("nothing"))
    # A null is none of the other problems, whichever of their conditions it may meet.
    of_null = missing if required else sf.lit(None).cast(FAULT_TYPE)
    wrong = sf.when(source.isNull(), of_null).otherwise(wrong)
    return Cell(sf.when(wrong.isNull(), value), wrong)


def _largest(type_: pa.DataType) -> Column:
    # As text: the way to Java takes no integer above 64 bits.
    return sf.lit(str(_LARGEST[type_])).cast(_ANY_WHOLE)


def _bytes(length: int | None) -> str:
    return "bytes" if length is None else f"{length} bytes"


def _numbers(type_: pa.DataType) -> str:
    return f"a whole number from 0 to {_LARGEST[type_]}"
