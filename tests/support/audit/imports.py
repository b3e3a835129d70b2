"""An endpoint's answers about the chain of a fixture, as the rows that an import must give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports import files_of
from chainkit.exports.tables import CHAIN_TABLES
from support.exports import read_manifest
from support.project import TESTS

FIXTURES = TESTS / "fixtures"

Row = dict[str, Any]


def read_chain(directory: Path) -> dict[str, list[Row]]:
    """Read a chain export whose files are proved, in the order of the files' names."""
    manifest = read_manifest(directory, "chain")
    return {
        table: [
            row
            for name in files_of(manifest, table)
            for row in pq.read_table(directory / name, schema=CHAIN_TABLES[table]).to_pylist()
        ]
        for table in CHAIN_TABLES
    }


def answered_rows(path: Path) -> dict[str, list[Row]]:
    """Return the rows of the four tables from a file of blocks and receipts as answered."""
    rows: dict[str, list[Row]] = {table: [] for table in CHAIN_TABLES}
    for each in json.loads(path.read_text()):
        block, receipts = each["block"], each["receipts"]
        rows["blocks"].append(
            _row("blocks", block) | {"transaction_count": len(block["transactions"])}
        )
        rows["transactions"] += (_row("transactions", value) for value in block["transactions"])
        rows["receipts"] += (_row("receipts", receipt) for receipt in receipts)
        rows["logs"] += (_row("logs", log) for receipt in receipts for log in receipt["logs"])
    return rows


_RENAMED: Mapping[str, Mapping[str, str]] = {
    "blocks": {},
    "transactions": {
        "transaction_hash": "hash",
        "from_address": "from",
        "to_address": "to",
        "gas_limit": "gas",
    },
    "receipts": {"from_address": "from", "to_address": "to"},
    "logs": {},
}

_LISTS = ("access_list", "authorization_list", "blob_versioned_hashes")
"""Columns that no imported format has."""


def _row(table: str, answer: Mapping[str, Any]) -> Row:
    return {
        field.name: _value(answer, _RENAMED[table].get(field.name, _camel(field.name)), field.type)
        for field in CHAIN_TABLES[table]
        if field.name not in _LISTS
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(answer: Mapping[str, Any], name: str, type_: pa.DataType) -> Any:
    value = answer.get(name)
    if value is None:
        return None
    convert: Callable[[Any], Any] = int
    if type_ == pa.binary():
        return bytes.fromhex(value[2:].zfill(64) if name in "rs" else value[2:])
    if pa.types.is_list(type_):
        return [bytes.fromhex(each[2:]) for each in value]
    if pa.types.is_decimal(type_):
        convert = Decimal
    return convert(int(value, 16))
