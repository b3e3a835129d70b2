"""From a column's value to an item of RLP, the encoding under every hash of the execution layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import rlp

from chainkit.errors import MalformedData, Unprovable
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

Row: TypeAlias = Mapping[str, Any]
"""One row of a table of chainkit.exports.tables, as pyarrow gives it."""

Item: TypeAlias = "bytes | list[Item]"
"""A value that RLP encodes."""

_REFUSALS: Final = (ValueError, TypeError, KeyError, OverflowError)


@dataclass(frozen=True, slots=True)
class Kind:
    """The form of a column's values."""

    item: Callable[[Any], Item]
    """Makes an item of a value. Raises one of _REFUSALS if the value has another form."""
    words: str
    """The kind for people: ``expected …``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that an encoding has an item of."""

    name: str
    kind: Kind
    null: Item | None = None
    """The item of a null; None if a null only means that the source gave no value."""

    def checked(self, row: Row, subject: Callable[[Row], str]) -> Any:
        """Return the value of a row, which must not be null. Raises as ``item`` does."""
        self.item(row, subject)
        return row[self.name]

    def item(self, row: Row, subject: Callable[[Row], str]) -> Item:
        """Return the item of a row. Raises MalformedData, which is Unprovable for a null."""
        value = row[self.name]
        if value is None:
            if self.null is None:
                raise Unprovable(subject(row), self.kind.words, "null", f"column {self.name}")
            return self.null
        try:
            return self.kind.item(value)
        except _REFUSALS as error:
            place = f"column {self.name}"
            raise MalformedData(subject(row), self.kind.words, _words(value), place) from error


def encoded(item: Item) -> bytes:
    """Return the RLP of an item."""
    return bytes(rlp.encode(item, infer_serializer=False))


def integer_item(value: int | Decimal) -> bytes:
    """Return an integer from 0 as the shortest big-endian bytes; 0 has none."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError("not an integer")
    number = int(value)
    if number != value:
        raise ValueError("a fraction")
    # The library itself refuses a negative integer.
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def transaction_subject(row: Row) -> str:
    """Name the transaction of a row of transactions or receipts, for error messages."""
    return f"transaction {row['transaction_index']} of block {row['block_number']}"


def _flag(value: bool) -> bytes:
    if not isinstance(value, bool):
        raise TypeError("not a flag")
    return b"\x01" if value else b""


def _bytes(value: bytes, length: int | None = None) -> bytes:
    if not isinstance(value, bytes) or (length is not None and len(value) != length):
        raise ValueError("not so many bytes")
    return value


def _uint256(value: bytes) -> bytes:
    return _bytes(value, HASH_LENGTH).lstrip(b"\0")


def _hashes(value: Sequence[bytes]) -> list[Item]:
    return [_bytes(hash_, HASH_LENGTH) for hash_ in value]


def _access_list(value: Sequence[Row]) -> list[Item]:
    return [
        [_bytes(element["address"], ADDRESS_LENGTH), _hashes(element["storage_keys"])]
        for element in value
    ]


def _authorization_list(value: Sequence[Row]) -> list[Item]:
    return [
        [
            _uint256(element["chain_id"]),
            _bytes(element["address"], ADDRESS_LENGTH),
            integer_item(element["nonce"]),
            integer_item(element["y_parity"]),
            _uint256(element["r"]),
            _uint256(element["s"]),
        ]
        for element in value
    ]


def fixed(length: int) -> Kind:
    """Return the kind of values with ``length`` bytes."""
    return Kind(lambda value: _bytes(value, length), f"{length} bytes")


INTEGER: Final = Kind(integer_item, "an integer from 0")
BYTES: Final = Kind(_bytes, "bytes")
ADDRESS: Final = fixed(ADDRESS_LENGTH)
HASH: Final = fixed(HASH_LENGTH)
BLOOM: Final = fixed(256)
POW_NONCE: Final = fixed(8)
UINT256: Final = Kind(_uint256, "32 bytes")
FLAG: Final = Kind(_flag, "true or false")
HASHES: Final = Kind(_hashes, "hashes of 32 bytes")
ACCESS_LIST: Final = Kind(_access_list, "addresses, each with hashes of 32 bytes")
AUTHORIZATION_LIST: Final = Kind(_authorization_list, "signed delegations")


def _words(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return f"{str(value)[:40]} ({type(value).__name__})"
