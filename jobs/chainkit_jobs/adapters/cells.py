"""Converts the cells of other tools to canonical ones, as Spark's SQL: a value, or a fault.

Each function takes the name of a source's column and returns a Cell; a ``required`` cell may not be
null. Nothing is guessed: hex without 0x, upper-case hex, hex digits stored as bytes, a number with
a fraction or one that does not fit are faults.

Expressions are text: a Column makes a call to Java for each of its parts, of which an import has
ten thousand; text is one call.
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
    """A canonical cell, as two expressions."""

    value: str
    """Null where the source has none, or a wrong one."""
    fault: str
    """A FAULT_TYPE, null where the value is fine."""


def where(condition: str, cell: Cell) -> Cell:
    """Return a cell that is null where a condition does not hold."""
    return Cell(
        f"case when {condition} then {cell.value} end",
        f"case when {condition} then {cell.fault} end",
    )


NO_FAULT: Final = f"cast(null as {FAULT_TYPE})"


def quoted(name: str) -> str:
    """Return a column's name in quotes."""
    return f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return text, or a regular expression, as a literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def fault(code: FaultCode, expected: str, got: str) -> str:
    """Return what is wrong with a cell; ``got`` is anything that can become a string."""
    shown = f"coalesce(substring(cast({got} as string), 1, {_SHOWN}), 'nothing')"
    return f"named_struct('code', {literal(code)}, 'expected', {literal(expected)}, 'got', {shown})"


def missing(expected: str) -> str:
    """Return that a cell is empty."""
    return fault(FaultCode.MISSING_VALUE, expected, "'nothing'")


def unknown(type_: pa.DataType) -> Cell:
    """Return the cell of a value that a source never has, or a type lacks."""
    return Cell(f"cast(null as {_sql_type(type_)})", NO_FAULT)


def hex_text(name: str, length: int | None = None, required: bool = True) -> Cell:
    """Convert text with 0x and lower-case digits to ``length`` bytes, or to any number of bytes."""
    text, pattern = quoted(name), literal(r"\A0x([0-9a-f]{2})*\z")
    expected = f"{name}: {_bytes(length)} as 0x and lower-case hex digits"
    problems = [(f"not {text} rlike {pattern}", fault(FaultCode.WRONG_ENCODING, expected, text))]
    if length is not None:
        wrong_length = fault(FaultCode.WRONG_LENGTH, expected, text)
        problems.append((f"length({text}) != {2 + 2 * length}", wrong_length))
    return _cell(name, f"try_to_binary(substring({text}, 3), 'hex')", problems, required)


def raw_bytes(name: str, length: int | None = None, required: bool = True) -> Cell:
    """Take ``length`` bytes, or any number of bytes, unchanged.

    Only a value of fixed length can be distinguished from its own hex digits.
    """
    value = quoted(name)
    if length is None:
        return _cell(name, value, [], required)
    expected = f"{name}: {_bytes(length)}"
    # Not as UTF-8, which the bytes need not be: one character for each byte.
    text, pattern = f"decode({value}, 'ISO-8859-1')", literal(r"\A(0x)?[0-9a-fA-F]*\z")
    is_hex = f"length({value}) in ({2 * length}, {2 * length + 2}) and {text} rlike {pattern}"
    got = f"format_string('%d bytes', length({value}))"
    return _cell(
        name,
        value,
        [
            (is_hex, fault(FaultCode.WRONG_ENCODING, expected, text)),
            (f"length({value}) != {length}", fault(FaultCode.WRONG_LENGTH, expected, got)),
        ],
        required,
    )


def whole_number(name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert an integer or decimal column to int64, UINT64 or WEI."""
    value, expected = quoted(name), f"{name}: {_numbers(type_)}"
    is_outside = f"{value} < 0 or floor({value}) > {_largest(type_)}"
    return _cell(
        name,
        f"try_cast({value} as {_sql_type(type_)})",
        [
            (f"floor({value}) != {value}", fault(FaultCode.WRONG_ENCODING, expected, value)),
            (is_outside, fault(FaultCode.OUT_OF_RANGE, expected, value)),
        ],
        required,
    )


def number_text(name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert decimal digits in a text column to int64, UINT64 or WEI."""
    text, pattern = quoted(name), literal(r"\A-?[0-9]+\z")
    expected = f"{name}: {_numbers(type_)} as decimal digits"
    number = f"try_cast({text} as {_ANY_WHOLE})"
    is_outside = f"startswith({text}, '-') or {number} is null or {number} > {_largest(type_)}"
    return _cell(
        name,
        f"try_cast({number} as {_sql_type(type_)})",
        [
            (f"not {text} rlike {pattern}", fault(FaultCode.WRONG_ENCODING, expected, text)),
            (is_outside, fault(FaultCode.OUT_OF_RANGE, expected, text)),
        ],
        required,
    )


def canonical_rows(
    frame: DataFrame,
    table: str,
    cells: Mapping[str, Cell],
    source_file: str,
    *row_faults: str,
    row_chain_id: str = "null",
) -> DataFrame:
    """Return the rows of a SourceTables frame.

    ``cells`` are by canonical column name; columns without one are null. ``row_faults`` are of
    FAULT_TYPE and count before those of the cells, in their order. ``row_chain_id`` is an integer.
    """
    schema = CHAIN_TABLES[table]
    if strangers := cells.keys() - set(schema.names):
        raise ValueError(f"{table} has no {', '.join(sorted(strangers))}")
    known = [cells[name].fault for name in schema.names if name in cells]
    faults = ", ".join([*row_faults, *known, NO_FAULT])
    cells = {field.name: unknown(field.type) for field in schema} | dict(cells)
    columns = [
        f"cast({cells[field.name].value} as {_sql_type(field.type)}) as {field.name}"
        for field in schema
    ]
    return frame.selectExpr(
        *columns,
        f"{source_file} as source_file",
        f"cast({row_chain_id} as {_ANY_WHOLE}) as row_chain_id",
        f"cast(coalesce({faults}) as {FAULT_TYPE}) as fault",
    )


def relative_path(directory: Path) -> Column:
    """Return the name of the file that a row was read from, relative to the source folder.

    For frames of Spark's own file readers.
    """
    # Spark gives a URI, in which a plus is a plus.
    encoded = sf.replace(sf.col("_metadata.file_path"), sf.lit("+"), sf.lit("%2B"))
    path = sf.regexp_replace(sf.url_decode(encoded), "^file:/+", "/")
    return sf.substring(path, len(str(directory.resolve())) + 2, 2**31 - 1)


def _cell(name: str, value: str, problems: list[tuple[str, str]], required: bool) -> Cell:
    # A null has none of the other faults, whichever of their conditions it may meet.
    of_null = missing(f"{name}: a value") if required else NO_FAULT
    cases = "".join(f" when {condition} then {problem}" for condition, problem in problems)
    wrong = f"case when {quoted(name)} is null then {of_null}{cases} end"
    return Cell(f"case when {wrong} is null then {value} end", wrong)


def _sql_type(type_: pa.DataType) -> str:
    return from_arrow_type(type_).simpleString()


def _largest(type_: pa.DataType) -> str:
    return f"cast('{_LARGEST[type_]}' as {_ANY_WHOLE})"


def _bytes(length: int | None) -> str:
    return "bytes" if length is None else f"{length} bytes"


def _numbers(type_: pa.DataType) -> str:
    return f"a whole number from 0 to {_LARGEST[type_]}"
