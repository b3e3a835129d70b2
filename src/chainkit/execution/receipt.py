"""Receipts as the receipts root of their block commits to them (EIP-658, EIP-2718)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chainkit.errors import MalformedData, Unprovable
from chainkit.execution.row import (
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
from chainkit.execution.transaction import OPTIMISM_DEPOSIT, typed
from chainkit.signatures import keccak256

_BLOOM_BITS: Final = 2048
_BITS_PER_VALUE: Final = 3

_STATUSES: Final = {0: b"", 1: b"\x01"}

_STATUS: Final = Column("status", Kind(lambda value: _STATUSES[value], "0 or 1"))
_CUMULATIVE_GAS_USED: Final = Column("cumulative_gas_used", INTEGER)
_DEPOSIT: Final = (Column("deposit_nonce", INTEGER), Column("deposit_receipt_version", INTEGER))
_LOG: Final = (Column("address", ADDRESS), Column("topics", HASHES), Column("data", BYTES))

_ETHEREUM: Final = range(5)
_ARBITRUM: Final = (0x64, 0x65, 0x66, 0x68, 0x69, 0x6A)
_TYPES: Final = frozenset({*_ETHEREUM, OPTIMISM_DEPOSIT, *_ARBITRUM})


def receipt_bytes(receipt: Row, logs: Sequence[Row]) -> bytes:
    """Return the EIP-2718 encoding of a row of receipts with its rows of logs, in their order.

    The bloom is made of the logs. Gas used, addresses and prices are no part of a receipt. Raises
    Unprovable for a type that this version does not know, or where a column is null that such a
    receipt has; MalformedData where a value is none of its column.
    """
    type_ = receipt["type"]
    if type_ not in _TYPES:
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
    # Until Canyon a receipts root left out the nonce, though endpoints tell it since Regolith.
    # The version came with Canyon, to tell both apart.
    if receipt["deposit_receipt_version"] is None:
        return []
    return [column.item(receipt, transaction_subject) for column in _DEPOSIT]


def _log_subject(log: Row) -> str:
    return f"log {log['log_index']} of block {log['block_number']}"
