"""Makes rows of an endpoint's JSON objects: each field is strictly parsed, and fits its column."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from chainkit.chain import parse_integer
from chainkit.errors import InconsistentAnswer, Unconfirmed
from chainkit.text.hexadecimal import parse_bytes
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

Value = TypeVar("Value")

Row: TypeAlias = dict[str, Any]
"""Column name to bytes, int, str, bool, None, or lists of such."""

_FRACTION: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?")
_SHOWN: Final = 80
"""Characters of a wrong value that an error repeats."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A place in an endpoint's answer, for error messages."""

    subject: str
    """Which block of which endpoint."""
    part: str
    """The transaction, receipt or log of the answer."""

    def require(self, what: str, expected: Any, got: Any) -> None:
        """Raise InconsistentAnswer where two values that must be the same are not."""
        if expected != got:
            raise self.inconsistent(f"{what} {_words(expected)}", _words(got))

    def read(self, parse: Callable[[Any], Value], value: Any) -> Value:
        """Return a JSON object as ``parse`` reads it. Raises InconsistentAnswer if that fails."""
        try:
            return parse(value)
        except (TypeError, ValueError, AttributeError):
            is_object = isinstance(value, dict)
            field = f"type: {INT64.expected}" if is_object else "a JSON object"
            error = self.inconsistent(field, _words(value.get("type") if is_object else value))
        raise error

    def left_out(self, field: str, expected: str) -> Unconfirmed:
        """Return the error for a missing field: another endpoint may have the field."""
        return Unconfirmed(self.subject, f"{field}: {expected}", "nothing", self.part)

    def inconsistent(self, expected: object, got: object) -> InconsistentAnswer:
        """Build the error for what cannot be right here."""
        return InconsistentAnswer(self.subject, expected, got, self.part)


@dataclass(frozen=True, slots=True)
class FieldForm:
    """The form of a field's values."""

    expected: str
    parse: Callable[[Any], Any]
    """Raises ValueError, TypeError, KeyError or AttributeError for anything else."""


def integer(bits: int) -> FieldForm:
    """Return the kind of unsigned integers (0x and hex digits) of so many bits."""
    return _below(2**bits, f"an integer below 2**{bits}")


def fixed(length: int) -> FieldForm:
    """Return the kind of values of ``length`` bytes."""
    return FieldForm(f"{length} bytes", lambda value: parse_bytes(value, length))


def list_of(kind: FieldForm) -> FieldForm:
    """Return the kind of lists of values of another kind."""
    return FieldForm(
        f"a list, each {kind.expected}", lambda value: [kind.parse(v) for v in _list(value)]
    )


def objects_of(fields: Mapping[str, tuple[str, FieldForm]]) -> FieldForm:
    """Return the kind of lists of objects; ``fields`` are by the names of the row."""

    def parse(value: Any) -> list[Row]:
        return [
            {to: kind.parse(each[name]) for to, (name, kind) in fields.items()}
            for each in map(_object, _list(value))
        ]

    names = ", ".join(name for name, _ in fields.values())
    return FieldForm(f"a list, each with well-formed {names}", parse)


def _below(bound: int, expected: str) -> FieldForm:
    def parse(value: Any) -> int:
        parsed = parse_integer(value)
        if parsed >= bound:
            raise ValueError(f"too large: {value}")
        return parsed

    return FieldForm(expected, parse)


def _fraction(value: Any) -> str:
    if _FRACTION.fullmatch(value) is None:
        raise ValueError("no decimal fraction")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


INT64: Final = integer(63)
UINT64: Final = integer(64)
WEI: Final = _below(10**38, "an integer below 10**38")
UINT256: Final = FieldForm(
    "an integer below 2**256", lambda value: parse_integer(value).to_bytes(HASH_LENGTH, "big")
)
"""Kept as 32 bytes, big-endian."""
HASH: Final = fixed(HASH_LENGTH)
ADDRESS: Final = fixed(ADDRESS_LENGTH)
BYTES: Final = FieldForm("0x and hex digits", parse_bytes)
FRACTION: Final = FieldForm("a decimal fraction", _fraction)
FLAG: Final = FieldForm("true or false", _flag)


class RowReader:
    """Makes rows of one table from JSON objects."""

    def __init__(self, schema: pa.Schema, fields: Mapping[str, tuple[str, FieldForm]]) -> None:
        """Take the table, and the field of each column; columns without a field are null."""
        self._fields = [
            (column, *fields[column], schema.field(column).nullable)
            for column in schema.names
            if column in fields
        ]
        self._nothing = dict.fromkeys(schema.names)

    def read(self, value: Any, place: AnswerPart) -> Row:
        """Return the row of an object.

        Raises InconsistentAnswer that names a field which is malformed, or larger than its column,
        and Unconfirmed that names a field which is left out.
        """
        if not isinstance(value, dict):
            raise place.inconsistent("a JSON object", _words(value))
        row: Row = dict(self._nothing)
        for column, name, kind, is_nullable in self._fields:
            field = value.get(name)
            if field is None and is_nullable:
                continue
            if field is None:
                raise place.left_out(name, kind.expected)
            try:
                row[column] = kind.parse(field)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                # Raised without its context, whose text may be as long as the endpoint likes.
                error = place.inconsistent(f"{name}: {kind.expected}", _words(field))
            else:
                continue
            raise error
        return row


def _words(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
