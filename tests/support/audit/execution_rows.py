"""Rows of a chain export from answers of JSON-RPC, as tests/vectors/blocks.json holds them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from chainkit.exports import tables
from support.vectors import from_hex

Row = dict[str, Any]

_NAMES = {
    "from_address": "from",
    "to_address": "to",
    "is_system_transaction": "isSystemTx",
    "transaction_hash": "hash",
}


def block_row(block: Mapping[str, Any]) -> Row:
    return _row(tables.BLOCKS, block, {})


def transaction_rows(case: Mapping[str, Any]) -> list[Row]:
    return [
        {
            **_row(tables.TRANSACTIONS, transaction, {"gas_limit": "gas"}),
            **_place(case, index),
        }
        for index, transaction in enumerate(case["transactions"])
    ]


def receipt_rows(case: Mapping[str, Any]) -> list[tuple[Row, list[Row]]]:
    """Each receipt with its logs."""
    return [
        (
            {**_row(tables.RECEIPTS, receipt, {}), **_place(case, index)},
            [
                {**_row(tables.LOGS, log, {}), **_place(case, index), "log_index": log_index}
                for log_index, log in enumerate(receipt["logs"])
            ],
        )
        for index, receipt in enumerate(case["receipts"])
    ]


def empty_transaction(**columns: Any) -> Row:
    """A transaction of which only these columns have a value."""
    place = {"block_number": 7, "transaction_index": 3}
    return {**dict.fromkeys(tables.TRANSACTIONS.names), **place, **columns}


def _place(case: Mapping[str, Any], index: int) -> Row:
    number = case.get("block", {}).get("number", "0x0")
    return {"block_number": int(number, 16), "transaction_index": index}


def _row(schema: pa.Schema, answer: Mapping[str, Any], names: Mapping[str, str]) -> Row:
    return {field.name: _value(field, answer.get(_key(field.name, names))) for field in schema}


def _key(name: str, names: Mapping[str, str]) -> str:
    first, *rest = name.split("_")
    return {**_NAMES, **names}.get(name, first + "".join(word.capitalize() for word in rest))


def _value(field: pa.Field, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_list(field.type):
        return [_value(field.type.value_field, element) for element in value]
    if pa.types.is_struct(field.type):
        return {
            inner.name: _value(inner, value[_key(inner.name, {})])
            for inner in (field.type.field(place) for place in range(field.type.num_fields))
        }
    if pa.types.is_decimal(field.type):
        return Decimal(int(value, 16))
    if pa.types.is_integer(field.type):
        return int(value, 16)
    if field.name in ("r", "s") or (field.name == "chain_id" and field.type == pa.binary()):
        return int(value, 16).to_bytes(32, "big")
    return from_hex(value) if pa.types.is_binary(field.type) else value
