"""Transactions in the form of their block (EIP-2718): a type byte, then RLP of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum.decoded import bytes_of, decoded_items
from chainkit.ethereum.row import (
    ACCESS_LIST,
    ADDRESS,
    AUTHORIZATION_LIST,
    BYTES,
    FLAG,
    HASH,
    HASHES,
    INTEGER,
    UINT256,
    Column,
    Item,
    Row,
    encoded,
    transaction_subject,
)
from chainkit.types import ADDRESS_LENGTH

LEGACY: Final = 0
OPTIMISM_DEPOSIT: Final = 0x7E
ARBITRUM_DEPOSIT: Final = 0x64
ARBITRUM_UNSIGNED: Final = 0x65
ARBITRUM_CONTRACT: Final = 0x66
ARBITRUM_RETRY: Final = 0x68
ARBITRUM_SUBMIT_RETRYABLE: Final = 0x69
ARBITRUM_INTERNAL: Final = 0x6A

_CHAIN_ID: Final = Column("chain_id", INTEGER)
_NONCE: Final = Column("nonce", INTEGER)
_FROM: Final = Column("from_address", ADDRESS)
_GAS_PRICE: Final = Column("gas_price", INTEGER)
_PRIORITY_FEE: Final = Column("max_priority_fee_per_gas", INTEGER)
_MAX_FEE: Final = Column("max_fee_per_gas", INTEGER)
_GAS_LIMIT: Final = Column("gas_limit", INTEGER)
_TO: Final = Column("to_address", ADDRESS)
_TO_OR_CREATE: Final = Column("to_address", ADDRESS, null=b"")
_VALUE: Final = Column("value", INTEGER)
_INPUT: Final = Column("input", BYTES)
_ACCESS_LIST: Final = Column("access_list", ACCESS_LIST)
_REQUEST_ID: Final = Column("request_id", HASH)
_REFUND_TO: Final = Column("refund_to", ADDRESS)

_CALL: Final = (_GAS_LIMIT, _TO_OR_CREATE, _VALUE, _INPUT)
_CALL_ONLY: Final = (_GAS_LIMIT, _TO, _VALUE, _INPUT)
_FEES_AND_CALL: Final = (_CHAIN_ID, _NONCE, _PRIORITY_FEE, _MAX_FEE, *_CALL, _ACCESS_LIST)
_FEES_AND_CALL_ONLY: Final = (_CHAIN_ID, _NONCE, _PRIORITY_FEE, _MAX_FEE, *_CALL_ONLY, _ACCESS_LIST)

SIGNATURE_COLUMNS: Final = (Column("v", INTEGER), Column("r", UINT256), Column("s", UINT256))
"""Fields that follow in every signed transaction."""


@dataclass(frozen=True, slots=True)
class TransactionType:
    """A type of transaction (EIP-2718)."""

    columns: tuple[Column, ...]
    """The fields that the hash commits to, in their order, without a signature."""
    is_signed: bool = True
    """The sender signs ``columns``, and SIGNATURE_COLUMNS follow them."""


TRANSACTION_TYPES: Final[Mapping[int, TransactionType]] = {
    LEGACY: TransactionType((_NONCE, _GAS_PRICE, *_CALL)),
    # EIP-2930, EIP-1559, EIP-4844, EIP-7702
    1: TransactionType((_CHAIN_ID, _NONCE, _GAS_PRICE, *_CALL, _ACCESS_LIST)),
    2: TransactionType(_FEES_AND_CALL),
    3: TransactionType(
        (
            *_FEES_AND_CALL_ONLY,
            Column("max_fee_per_blob_gas", INTEGER),
            Column("blob_versioned_hashes", HASHES),
        )
    ),
    4: TransactionType(
        (*_FEES_AND_CALL_ONLY, Column("authorization_list", AUTHORIZATION_LIST)),
    ),
    # Endpoints leave out what is nothing: no mint, no system transaction.
    OPTIMISM_DEPOSIT: TransactionType(
        (
            *(Column("source_hash", HASH), _FROM, _TO_OR_CREATE, Column("mint", INTEGER, null=b"")),
            *(_VALUE, _GAS_LIMIT, Column("is_system_transaction", FLAG, null=b""), _INPUT),
        ),
        is_signed=False,
    ),
    # Nitro (go-ethereum/core/types/arb_types.go): layer 1 or ArbOS makes these.
    ARBITRUM_DEPOSIT: TransactionType(
        (_CHAIN_ID, _REQUEST_ID, _FROM, _TO, _VALUE), is_signed=False
    ),
    ARBITRUM_UNSIGNED: TransactionType(
        (_CHAIN_ID, _FROM, _NONCE, _MAX_FEE, *_CALL), is_signed=False
    ),
    ARBITRUM_CONTRACT: TransactionType(
        (_CHAIN_ID, _REQUEST_ID, _FROM, _MAX_FEE, *_CALL), is_signed=False
    ),
    ARBITRUM_RETRY: TransactionType(
        (
            *(_CHAIN_ID, _NONCE, _FROM, _MAX_FEE, *_CALL, Column("ticket_id", HASH), _REFUND_TO),
            *(Column("max_refund", INTEGER), Column("submission_fee_refund", INTEGER)),
        ),
        is_signed=False,
    ),
    ARBITRUM_SUBMIT_RETRYABLE: TransactionType(
        (
            *(_CHAIN_ID, _REQUEST_ID, _FROM, Column("l1_base_fee", INTEGER)),
            *(Column("deposit_value", INTEGER), _MAX_FEE, _GAS_LIMIT),
            *(Column("retry_to", ADDRESS, null=b""), Column("retry_value", INTEGER)),
            *(Column("beneficiary", ADDRESS), Column("max_submission_fee", INTEGER)),
            *(_REFUND_TO, Column("retry_data", BYTES)),
        ),
        is_signed=False,
    ),
    ARBITRUM_INTERNAL: TransactionType((_CHAIN_ID, _INPUT), is_signed=False),
}
"""The types of transactions that this version can encode."""

SIGNED_COLUMNS: Final[Mapping[int, tuple[Column, ...]]] = {
    number: each.columns for number, each in TRANSACTION_TYPES.items() if each.is_signed
}
"""Fields that the sender of a transaction signs, by type; the signature follows them."""

COLUMNS_BY_TYPE: Final[Mapping[int, tuple[Column, ...]]] = {
    number: (*each.columns, *SIGNATURE_COLUMNS) if each.is_signed else each.columns
    for number, each in TRANSACTION_TYPES.items()
}
"""Fields of a transaction that its hash commits to, in their order, by type."""

COMMITTED_COLUMNS: Final[Mapping[int, frozenset[str]]] = {
    type_: frozenset(column.name for column in columns)
    for type_, columns in COLUMNS_BY_TYPE.items()
}
"""The names of the columns that a transaction's hash commits to, by type."""

# Rows of every type have a chain id: an endpoint derives it where a transaction has none.
_OF_EVERY_TYPE: Final = frozenset(
    {"chain_id", "nonce", "from_address", "to_address", "value", "input", "gas_limit"}
)
_OF_SOME_TYPES: Final = tuple(
    dict.fromkeys(
        column.name
        for columns in COLUMNS_BY_TYPE.values()
        for column in columns
        if column.name not in _OF_EVERY_TYPE
    )
)
FOREIGN_COLUMNS: Final[Mapping[int, tuple[str, ...]]] = {
    type_: tuple(name for name in _OF_SOME_TYPES if name not in names)
    for type_, names in COMMITTED_COLUMNS.items()
}
"""The names of the columns that only other types have, by type."""


def types_with(column: str) -> tuple[int, ...]:
    """Return the types of transactions whose hash commits to a column."""
    return tuple(type_ for type_, names in COMMITTED_COLUMNS.items() if column in names)


_LOWEST_LIST: Final = 0xC0
"""First byte of an RLP list: no type of transaction is as high (EIP-2718)."""


@dataclass(frozen=True, slots=True)
class MessageCall:
    """An encoded transaction, taken apart."""

    to: bytes | None
    """20 bytes: the called address; None if the transaction creates a contract, or is no call."""
    input: bytes
    """The calldata, or the creation code; none if the transaction is no call."""


def transaction_bytes(transaction: Row) -> bytes:
    """Return the EIP-2718 encoding of a row of transactions. Its keccak256 is the hash.

    Raises Unprovable, naming the column, where a column of its type is null, or for a type that
    this version does not know; MalformedData where a value does not fit its column, where a column
    of other types has a value, or where the chain id is not the signed one.
    """
    columns = _columns(transaction, COLUMNS_BY_TYPE)
    for name in FOREIGN_COLUMNS[transaction["type"]]:
        if _says_something(transaction[name]):
            expected = f"null for type {transaction['type']:#x}"
            raise _malformed(transaction, expected, "a value", name)
    if transaction["type"] == LEGACY and transaction["chain_id"] is not None:
        signed = signed_chain_id(transaction)
        if signed is not None and signed != transaction["chain_id"]:
            raise _malformed(transaction, signed, transaction["chain_id"], "chain_id")
    return typed(transaction, [column.item(transaction, transaction_subject) for column in columns])


def decode_call(data: bytes) -> MessageCall:
    """Return what a transaction, encoded as transaction_bytes does, calls.

    Raises Unprovable for a type that this version does not know, MalformedData for other bytes.
    """
    subject = "transaction"
    type_ = data[0] if data and data[0] < _LOWEST_LIST else LEGACY
    if type_ not in COLUMNS_BY_TYPE:
        expected = "a type of transaction that this version knows"
        raise Unprovable(subject, expected, f"{type_:#x}")
    names = [column.name for column in COLUMNS_BY_TYPE[type_]]
    items = decoded_items(data if type_ == LEGACY else data[1:], subject, names)
    to, input_ = (
        bytes_of(items, name, subject) if name in names else b"" for name in ("to_address", "input")
    )
    if len(to) not in (0, ADDRESS_LENGTH):
        raise MalformedData(subject, f"to_address: {ADDRESS_LENGTH} bytes or none", len(to))
    return MessageCall(to or None, input_)


def signed_items(transaction: Row) -> list[Item]:
    """Return what the sender of a transaction signed, without type byte, chain id by EIP-155.

    Raises Unprovable for a type that is not signed, or not known; else as transaction_bytes.
    """
    columns = _columns(transaction, SIGNED_COLUMNS)
    return [column.item(transaction, transaction_subject) for column in columns]


def signed_chain_id(transaction: Row) -> int | None:
    """Return the chain for which a legacy transaction was signed; None if for any chain (EIP-155).

    Raises Unprovable if ``v`` is null, MalformedData if it is no legacy transaction's.
    """
    v = int(SIGNATURE_COLUMNS[0].checked(transaction, transaction_subject))
    if v in (27, 28):
        return None
    if v < 35:
        raise _malformed(transaction, "27, 28 or from 35", v, "v")
    return (v - 35) // 2


def typed(row: Row, items: list[Item]) -> bytes:
    """Return the RLP of items after the row's type byte, which a legacy row has not."""
    return encoded(items) if row["type"] == LEGACY else bytes([row["type"]]) + encoded(items)


def _columns(transaction: Row, by_type: Mapping[int, tuple[Column, ...]]) -> tuple[Column, ...]:
    try:
        return by_type[transaction["type"]]
    except KeyError:
        types = ", ".join(f"{type_:#x}" for type_ in by_type)
        expected, got = f"one of the types {types}", f"{transaction['type']:#x}"
        raise Unprovable(transaction_subject(transaction), expected, got, "column type") from None


def _says_something(value: Any) -> bool:
    # Endpoints write zeros for missing values, such as the signature of a deposit.
    return any(value) if isinstance(value, bytes) else bool(value)


def _malformed(transaction: Row, expected: object, got: object, column: str) -> MalformedData:
    return MalformedData(transaction_subject(transaction), expected, got, f"column {column}")
