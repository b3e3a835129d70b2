"""Blocks as endpoints answer them, encoded as their hashes and roots commit to them.

The JSON is encoded straight to RLP, field by field, by the tables of ``chainkit.ethereum``. All
functions raise Unprovable, which names the field, where a field is left out or cannot be encoded,
and for a type of transaction that this version does not know. Transactions and receipts have to be
completed before (see ``completion``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from chainkit.chain.completion import camel_case, transaction_field, transaction_type
from chainkit.chain.parsing import parse_integer, parse_list
from chainkit.errors import Unprovable
from chainkit.ethereum.bloom import bloom_of
from chainkit.ethereum.header import (
    FIRST_HEADER_COLUMNS,
    HEADER_COLUMNS_BY_HARDFORK,
    LATER_HEADER_COLUMNS,
)
from chainkit.ethereum.receipt import RECEIPT_TYPES
from chainkit.ethereum.rlp_bytes import EMPTY, encoded_bytes, encoded_integer, encoded_list
from chainkit.ethereum.row import (
    ACCESS_LIST,
    ADDRESS,
    AUTHORIZATION_LIST,
    BLOOM,
    BYTES,
    FLAG,
    HASH,
    HASHES,
    INTEGER,
    POW_NONCE,
    UINT256,
    Column,
    Kind,
)
from chainkit.ethereum.transaction import COLUMNS_BY_TYPE, LEGACY, OPTIMISM_DEPOSIT
from chainkit.text.hexadecimal import parse_bytes
from chainkit.text.printable import printable
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

_Encode = Callable[[Any], bytes]
"""Makes RLP of a JSON value. Raises KeyError, TypeError or ValueError for a value of another
kind."""

_Field = tuple[str, _Encode, bytes | None, str]
"""The field's name in the JSON, its encoding, the RLP of a null if null has a meaning, and the
expected form in words."""


def _fixed(length: int) -> _Encode:
    return lambda text: encoded_bytes(parse_bytes(text, length))


def _integer(text: str) -> bytes:
    return encoded_integer(parse_integer(text))


def _flag(value: bool) -> bytes:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return b"\x01" if value else EMPTY


def _hashes(values: Iterable[str]) -> bytes:
    return encoded_list(
        [encoded_bytes(parse_bytes(each, HASH_LENGTH)) for each in parse_list(values)]
    )


def _access_list(values: Iterable[Mapping[str, Any]]) -> bytes:
    return encoded_list(
        [
            encoded_list([_ADDRESS(each["address"]), _hashes(each["storageKeys"])])
            for each in parse_list(values)
        ]
    )


def _authorizations(values: Iterable[Mapping[str, Any]]) -> bytes:
    return encoded_list([_authorization(each) for each in parse_list(values)])


def _authorization(value: Mapping[str, Any]) -> bytes:
    # Some endpoints still write the parity as ``v``, its name in EIP-7702's drafts.
    parity = value["v"] if value.get("yParity") is None else value["yParity"]
    numbers = (value["nonce"], parity, value["r"], value["s"])
    return encoded_list(
        [_integer(value["chainId"]), _ADDRESS(value["address"]), *map(_integer, numbers)]
    )


_ADDRESS: Final = _fixed(ADDRESS_LENGTH)

_ENCODINGS: Final[Mapping[Kind, _Encode]] = {
    ADDRESS: _ADDRESS,
    HASH: _fixed(HASH_LENGTH),
    BLOOM: _fixed(256),
    POW_NONCE: _fixed(8),
    BYTES: lambda text: encoded_bytes(parse_bytes(text)),
    INTEGER: _integer,
    UINT256: _integer,
    FLAG: _flag,
    HASHES: _hashes,
    ACCESS_LIST: _access_list,
    AUTHORIZATION_LIST: _authorizations,
}


def _fields(columns: Iterable[Column], name_of: Callable[[str], str]) -> tuple[_Field, ...]:
    return tuple(
        (
            name_of(column.name),
            _ENCODINGS[column.kind],
            # Only bytes stand for nothing, not a list.
            encoded_bytes(column.null) if isinstance(column.null, bytes) else None,
            column.kind.words,
        )
        for column in columns
    )


_FIRST_FIELDS: Final = _fields(FIRST_HEADER_COLUMNS, camel_case)
_LATER_FIELDS: Final = _fields(LATER_HEADER_COLUMNS, camel_case)
_TRANSACTION_FIELDS: Final = {
    type_: _fields(columns, transaction_field) for type_, columns in COLUMNS_BY_TYPE.items()
}

_SHOWN: Final = 80
"""Characters of a wrong value that an error repeats."""

_NOT_HASHED: Final = frozenset(
    {
        *("hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"),
        # Arbitrum shows parts of extraData and mixHash under names of their own.
        *("l1BlockNumber", "sendCount", "sendRoot"),
    }
)
_HEADER_NAMES: Final = _NOT_HASHED | {field[0] for field in (*_FIRST_FIELDS, *_LATER_FIELDS)}
_NEWEST_HARDFORK: Final = tuple(HEADER_COLUMNS_BY_HARDFORK)[-1]

_STATUSES: Final = (EMPTY, b"\x01")


def _status(value: str) -> bytes:
    return _STATUSES[parse_integer(value)]


_LOG_FIELDS: Final[tuple[_Field, ...]] = (
    ("address", _ADDRESS, None, "20 bytes"),
    ("topics", _hashes, None, "hashes of 32 bytes"),
    ("data", _ENCODINGS[BYTES], None, "bytes"),
)


def header_doubt(answer: Mapping[str, Any]) -> str:
    """Return why a header that does not have the block's hash proves no lie; empty where it does.

    The words follow "the header of block 7 …".
    """
    if unknown := sorted(name for name in answer if name not in _HEADER_NAMES):
        names = ", ".join(map(printable, unknown))
        return (
            f"with fields that are not known here: {names} (of a hard fork after "
            f"{_NEWEST_HARDFORK}, perhaps: a newer version of chainkit may know them)"
        )
    absent = {
        hardfork: [each for each in _names(columns) if answer.get(each) is None]
        for hardfork, columns in HEADER_COLUMNS_BY_HARDFORK.items()
    }
    absences = [f"{', '.join(names)} ({hardfork})" for hardfork, names in absent.items() if names]
    return (
        f"whose fields do not have its hash: it may lack {', '.join(absences)}" if absences else ""
    )


def _names(columns: Iterable[Column]) -> list[str]:
    return [camel_case(column.name) for column in columns]


def hardfork_fields(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the fields that a header has since some hard fork."""
    return tuple(field[0] for field in _LATER_FIELDS if answer.get(field[0]) is not None)


def encode_header(answer: Mapping[str, Any]) -> bytes:
    """Return the RLP of a block's header; its keccak256 is the block's hash."""
    later = [field for field in _LATER_FIELDS if answer.get(field[0]) is not None]
    return encoded_list(_items(answer, (*_FIRST_FIELDS, *later), "header"))


def encode_transaction(answer: Mapping[str, Any], subject: str) -> bytes:
    """Return the EIP-2718 encoding of a completed transaction; its keccak256 is its hash."""
    type_ = transaction_type(answer)
    if (fields := _TRANSACTION_FIELDS.get(type_)) is None:
        raise Unprovable(subject, "a type that this version knows", f"{type_:#x}", "field type")
    return _typed(type_, encoded_list(_items(answer, fields, subject)))


def encode_receipt(answer: Mapping[str, Any], subject: str) -> bytes:
    """Return the EIP-2718 encoding of a completed receipt, as the receipts root commits to it."""
    type_ = transaction_type(answer)
    if type_ not in RECEIPT_TYPES:
        raise Unprovable(subject, "a type that this version knows", f"{type_:#x}", "field type")
    logs = parse_list(answer["logs"]) if answer.get("logs") is not None else None
    if logs is None:
        raise Unprovable(subject, "a list of logs", "nothing", "field logs")
    status, gas, *deposit = _items(answer, _receipt_fields(answer, type_), subject)
    items = [encoded_list(_items(log, _LOG_FIELDS, f"a log of {subject}")) for log in logs]
    bloom = _items(answer, _BLOOM_FIELDS, subject) if answer.get("logsBloom") is not None else None
    blooms = bloom or [encoded_bytes(_bloom_of(logs))]
    return _typed(type_, encoded_list([status, gas, *blooms, encoded_list(items), *deposit]))


_RECEIPT_FIELDS: Final[tuple[_Field, ...]] = (
    ("status", _status, None, "a status of 0 or 1 (EIP-658)"),
    ("cumulativeGasUsed", _integer, None, INTEGER.words),
)
_DEPOSIT_FIELDS: Final[tuple[_Field, ...]] = (
    ("depositNonce", _integer, None, INTEGER.words),
    ("depositReceiptVersion", _integer, None, INTEGER.words),
)
_BLOOM_FIELDS: Final[tuple[_Field, ...]] = (("logsBloom", _ENCODINGS[BLOOM], None, BLOOM.words),)


def _receipt_fields(answer: Mapping[str, Any], type_: int) -> tuple[_Field, ...]:
    # Until Canyon a receipts root left out the nonce, though endpoints return the nonce since
    # Regolith.
    is_of_canyon = type_ == OPTIMISM_DEPOSIT and answer.get("depositReceiptVersion") is not None
    return (*_RECEIPT_FIELDS, *_DEPOSIT_FIELDS) if is_of_canyon else _RECEIPT_FIELDS


def _bloom_of(logs: Iterable[Mapping[str, Any]]) -> bytes:
    return bloom_of(
        [parse_bytes(each) for log in logs for each in (log["address"], *log["topics"])]
    )


def _typed(type_: int, data: bytes) -> bytes:
    return data if type_ == LEGACY else bytes([type_]) + data


def _items(answer: Mapping[str, Any], fields: Iterable[_Field], subject: str) -> list[bytes]:
    items: list[bytes] = []
    for name, encode, null, words in fields:
        value = answer.get(name)
        if value is None and null is not None:
            items.append(null)
            continue
        try:
            items.append(encode(value))
        except (LookupError, TypeError, ValueError, AttributeError):
            got = "nothing" if value is None else _shown(value)
        else:
            continue
        # Raised without its context: the context's text may be as long as the endpoint likes.
        raise Unprovable(subject, words, got, f"field {name}")
    return items


def _shown(value: Any) -> str:
    text = str(value)
    return printable(text) if len(text) <= _SHOWN else f"{printable(text[:_SHOWN])}…"
