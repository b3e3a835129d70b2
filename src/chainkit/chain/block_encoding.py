"""Blocks as endpoints answer them, encoded as their hashes and roots commit to them.

The JSON is encoded straight to RLP, field by field, by the tables of ``chainkit.ethereum``. All
functions raise KeyError, TypeError or ValueError where the JSON is none of an endpoint's, and
Unprovable for a type of transaction that this version does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from chainkit.chain.parsing import parse_integer, parse_list
from chainkit.errors import Unprovable
from chainkit.ethereum.header import FIRST_HEADER_COLUMNS, LATER_HEADER_COLUMNS
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
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

_Encode = Callable[[Any], bytes]
"""Makes RLP of a value of JSON. Raises KeyError, TypeError or ValueError where it is none such."""

_Field = tuple[str, _Encode, bytes | None]
"""A name in the JSON, its encoding, and the RLP of a null if null has a meaning."""


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

_TRANSACTION_NAMES: Final = {
    "from_address": "from",
    "to_address": "to",
    "gas_limit": "gas",
    "is_system_transaction": "isSystemTx",
}
"""Where the JSON of a transaction does not name a column in camelCase."""


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _fields(columns: Iterable[Column], names: Mapping[str, str]) -> tuple[_Field, ...]:
    return tuple(
        (
            names.get(column.name) or _camel_case(column.name),
            _ENCODINGS[column.kind],
            # Only bytes stand for nothing, not a list.
            encoded_bytes(column.null) if isinstance(column.null, bytes) else None,
        )
        for column in columns
    )


_FIRST_FIELDS: Final = _fields(FIRST_HEADER_COLUMNS, {})
_LATER_FIELDS: Final = _fields(LATER_HEADER_COLUMNS, {})
_TRANSACTION_FIELDS: Final = {
    type_: _fields(columns, _TRANSACTION_NAMES) for type_, columns in COLUMNS_BY_TYPE.items()
}

_NOT_HASHED: Final = frozenset(
    {
        *("hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"),
        # Arbitrum shows parts of extraData and mixHash under names of their own.
        *("l1BlockNumber", "sendCount", "sendRoot"),
    }
)
_HEADER_NAMES: Final = _NOT_HASHED | {name for name, _, _ in (*_FIRST_FIELDS, *_LATER_FIELDS)}

_STATUSES: Final = {"0x0": EMPTY, "0x1": b"\x01"}
_BLOOM_OF_RECEIPT: Final = _ENCODINGS[BLOOM]


def has_header(answer: Mapping[str, Any]) -> bool:
    """Tell whether there are all fields that every header has."""
    return all(answer.get(name) is not None for name, _, _ in _FIRST_FIELDS)


def has_unknown_fields(answer: Mapping[str, Any]) -> bool:
    """Tell whether a block has fields that this version does not know: its header may have them."""
    return any(name not in _HEADER_NAMES for name in answer)


def encode_header(answer: Mapping[str, Any]) -> bytes:
    """Return the RLP of a block's header; its keccak256 is the block's hash."""
    later = [field for field in _LATER_FIELDS if answer.get(field[0]) is not None]
    return _encoded(answer, (*_FIRST_FIELDS, *later))


def encode_transaction(answer: Mapping[str, Any]) -> bytes:
    """Return the EIP-2718 encoding of a transaction; its keccak256 is the transaction's hash."""
    type_ = _type(answer)
    if (fields := _TRANSACTION_FIELDS.get(type_)) is None:
        raise Unprovable("transaction", "a type that this version knows", f"{type_:#x}", "type")
    return _typed(type_, _encoded(answer, fields))


def encode_receipt(answer: Mapping[str, Any]) -> bytes:
    """Return the EIP-2718 encoding of a receipt, as the receipts root commits to it."""
    type_ = _type(answer)
    if type_ not in RECEIPT_TYPES:
        raise Unprovable("receipt", "a type that this version knows", f"{type_:#x}", "type")
    if answer.get("status") is None:
        raise Unprovable("receipt", "a status (EIP-658)", "none", "status")
    items = [
        _STATUSES[answer["status"]],
        _integer(answer["cumulativeGasUsed"]),
        _BLOOM_OF_RECEIPT(answer["logsBloom"]),
        encoded_list([_log(each) for each in parse_list(answer["logs"])]),
    ]
    # Until Canyon a receipts root left out the nonce, though endpoints tell it since Regolith.
    if type_ == OPTIMISM_DEPOSIT and answer.get("depositReceiptVersion") is not None:
        items += [_integer(answer["depositNonce"]), _integer(answer["depositReceiptVersion"])]
    return _typed(type_, encoded_list(items))


def _log(answer: Mapping[str, Any]) -> bytes:
    return encoded_list(
        [
            _ADDRESS(answer["address"]),
            _hashes(answer["topics"]),
            encoded_bytes(parse_bytes(answer["data"])),
        ]
    )


def _type(answer: Mapping[str, Any]) -> int:
    # Before Berlin there was one type, and no field for it.
    type_ = answer.get("type")
    return LEGACY if type_ is None else parse_integer(type_)


def _typed(type_: int, data: bytes) -> bytes:
    return data if type_ == LEGACY else bytes([type_]) + data


def _encoded(answer: Mapping[str, Any], fields: Iterable[_Field]) -> bytes:
    items: list[bytes] = []
    for name, encode, null in fields:
        value = answer.get(name)
        if value is not None:
            items.append(encode(value))
        elif null is not None:
            items.append(null)
        else:
            raise KeyError(name)
    return encoded_list(items)
