"""Receipts as the receipts root of their block commits to them (EIP-658, EIP-2718)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum.decoded import bytes_of, decoded_items
from chainkit.ethereum.row import (
    ADDRESS,
    BYTES,
    HASHES,
    INTEGER,
    Column,
    Item,
    Kind,
    Row,
    transaction_subject,
)
from chainkit.ethereum.transaction import OPTIMISM_DEPOSIT, TRANSACTION_TYPES, typed
from chainkit.signatures import keccak256
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH

_BLOOM_BITS: Final = 2048
_BITS_PER_VALUE: Final = 3

_STATUSES: Final = {0: b"", 1: b"\x01"}

_STATUS: Final = Column("status", Kind(lambda value: _STATUSES[value], "0 or 1"))
_CUMULATIVE_GAS_USED: Final = Column("cumulative_gas_used", INTEGER)
_DEPOSIT: Final = (Column("deposit_nonce", INTEGER), Column("deposit_receipt_version", INTEGER))
_LOG: Final = (Column("address", ADDRESS), Column("topics", HASHES), Column("data", BYTES))

RECEIPT_TYPES: Final = frozenset(TRANSACTION_TYPES)
"""Types of receipts that this version can encode."""

_LOWEST_LIST: Final = 0xC0
_ITEMS: Final = ("status", "cumulative_gas_used", "logs_bloom", "logs")
_DEPOSIT_ITEMS: Final = (*_ITEMS, *(column.name for column in _DEPOSIT))


@dataclass(frozen=True, slots=True)
class DecodedLog:
    """A log of a receipt, without its place in the block."""

    address: bytes
    """20 bytes."""
    topics: tuple[bytes, ...]
    """32 bytes each."""
    data: bytes


@dataclass(frozen=True, slots=True)
class DecodedReceipt:
    """An encoded receipt, taken apart."""

    succeeded: bool
    logs: tuple[DecodedLog, ...]


def receipt_bytes(receipt: Row, logs: Sequence[Row]) -> bytes:
    """Return the EIP-2718 encoding of a row of receipts with its rows of logs, in their order.

    The bloom is made of the logs. Gas used, addresses and prices are no part of a receipt. Raises
    Unprovable for a type that this version does not know, or where a column is null that such a
    receipt has; MalformedData where a value does not fit its column.
    """
    type_ = receipt["type"]
    if type_ not in RECEIPT_TYPES:
        expected = "a type of receipt that this version knows"
        raise Unprovable(transaction_subject(receipt), expected, f"{type_:#x}", "column type")
    log_items: list[Item] = [[column.item(log, _log_subject) for column in _LOG] for log in logs]
    items: list[Item] = [
        _STATUS.item(receipt, transaction_subject),
        _CUMULATIVE_GAS_USED.item(receipt, transaction_subject),
        bloom_of_logs(logs),
        log_items,
    ]
    return typed(receipt, items + _deposit_items(receipt))


def decode_receipt(data: bytes) -> DecodedReceipt:
    """Take a receipt apart that is encoded as receipt_bytes does.

    Raises Unprovable for a type that this version does not know, MalformedData for other bytes,
    such as a receipt from before EIP-658.
    """
    subject = "receipt"
    is_legacy = data[:1] >= bytes([_LOWEST_LIST])
    if not is_legacy and data[:1] not in {bytes([type_]) for type_ in RECEIPT_TYPES - {0}}:
        expected = "a type of receipt that this version knows"
        raise Unprovable(subject, expected, f"0x{data[:1].hex()}")
    is_deposit = data[:1] == bytes([OPTIMISM_DEPOSIT])
    items = decoded_items(
        data if is_legacy else data[1:], subject, _DEPOSIT_ITEMS if is_deposit else _ITEMS
    )
    status = bytes_of(items, "status", subject)
    if status not in _STATUSES.values():
        raise MalformedData(subject, "status: 0 or 1", f"{len(status)} bytes")
    logs = items.get("logs")
    if logs is None or isinstance(logs, bytes):
        raise MalformedData(subject, "logs", "none")
    return DecodedReceipt(status == _STATUSES[1], tuple(map(_decoded_log, logs)))


def _decoded_log(item: Item) -> DecodedLog:
    match item:
        case [bytes(address), [*items], bytes(data)] if len(address) == ADDRESS_LENGTH:
            topics = tuple(topic for topic in items if isinstance(topic, bytes))
            if [len(topic) for topic in topics] == [HASH_LENGTH] * len(items):
                return DecodedLog(address, topics, data)
    raise MalformedData("log of a receipt", "address, topics and data", "other items")


def bloom_of_logs(logs: Sequence[Row]) -> bytes:
    """Return the 256 bytes of filter over the addresses and topics of rows of logs."""
    mask = 0
    for value in {value for log in logs for value in (log["address"], *log["topics"])}:
        digest = keccak256(value)
        for place in range(0, 2 * _BITS_PER_VALUE, 2):
            mask |= 1 << int.from_bytes(digest[place : place + 2], "big") % _BLOOM_BITS
    return mask.to_bytes(_BLOOM_BITS // 8, "big")


def _deposit_items(receipt: Row) -> list[Item]:
    if receipt["type"] != OPTIMISM_DEPOSIT:
        for column in _DEPOSIT:
            if (got := receipt[column.name]) is not None:
                subject, place = transaction_subject(receipt), f"column {column.name}"
                raise MalformedData(subject, "null but for deposits", got, place)
        return []
    # Until Canyon a receipts root left out the nonce, though endpoints return the nonce since
    # Regolith. The version came with Canyon, to distinguish both forms.
    if receipt["deposit_receipt_version"] is None:
        return []
    return [column.item(receipt, transaction_subject) for column in _DEPOSIT]


def _log_subject(log: Row) -> str:
    return f"log {log['log_index']} of block {log['block_number']}"
