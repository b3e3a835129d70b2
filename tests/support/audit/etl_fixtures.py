"""The chain of tests/fixtures/ethereum-etl: files of three formats, and its node's answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.adapters.adapter import KEYS, SourceTables
from support.project import TESTS

FIXTURES: Final = TESTS / "fixtures"
ETHEREUM_ETL: Final = FIXTURES / "ethereum-etl"
BIGQUERY: Final = FIXTURES / "bigquery"
AWS: Final = FIXTURES / "aws"
RECORD: Final = ETHEREUM_ETL / "deployment.json"

FIRST, LAST = 7, 16

UNTOLD: Final = {
    "blocks": {"mix_hash", "parent_beacon_block_root", "requests_hash"},
    "transactions": {"chain_id", "access_list", "authorization_list", "v", "r", "s"},
    "receipts": set[str](),
    "logs": set[str](),
}
"""Columns that none of the three formats holds."""


def touch(folder: Path, *names: str) -> Path:
    """Make empty files, of which only the names matter."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def expected_rows(table: str, untold: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The node's rows, without the columns that a format does not hold.

    The node's chain has none of the columns that hard forks and other chains added later.
    """
    rows: list[dict[str, Any]] = json.loads((ETHEREUM_ETL / "expected.json").read_text())[table]
    later = dict.fromkeys(CHAIN_TABLES[table].names)
    return [later | row | dict.fromkeys({*UNTOLD[table], *untold}) for row in rows]


@dataclass(frozen=True)
class Collected:
    """The rows and faults that an adapter finds in a source."""

    rows: dict[str, list[dict[str, Any]]]
    """By table, in the order of its keys, written as expected.json writes them."""
    faults: dict[str, list[tuple[str, str]]]
    """By table: code and expectation of each faulty row, sorted."""


def collect(source: SourceTables) -> Collected:
    """Collect a source: one job per table."""
    rows: dict[str, list[dict[str, Any]]] = {}
    faults: dict[str, list[tuple[str, str]]] = {}
    for table, frame in source.items():
        collected = frame.select(*CHAIN_TABLES[table].names, "fault").collect()
        plain_rows = [
            {name: plain(row[name]) for name in CHAIN_TABLES[table].names} for row in collected
        ]
        rows[table] = sorted(plain_rows, key=lambda row: [row[key] or 0 for key in KEYS[table]])
        faults[table] = sorted(
            (row["fault"]["code"], row["fault"]["expected"]) for row in collected if row["fault"]
        )
    return Collected(rows, faults)


def plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    if isinstance(value, list):
        return [plain(each) for each in value]
    return int(value) if isinstance(value, Decimal) else value


NO_FAULTS: Final[dict[str, list[tuple[str, str]]]] = {table: [] for table in CHAIN_TABLES}
