"""The tables of a chain's costs: columns, types, and the version in each file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from chainkit.exports import tables

SCHEMA_VERSION: Final = 1
"""Version of all tables here; it increases when a column changes its name, type or meaning."""

PRICE_DIGITS: Final = 3
RATIO_DIGITS: Final = 6
SHARE_DIGITS: Final = 12

_PRICE: Final = pa.decimal128(38, PRICE_DIGITS)
_RATIO: Final = pa.decimal128(38, RATIO_DIGITS)
_SHARE: Final = pa.decimal128(38, SHARE_DIGITS)
_INT: Final = pa.int64()

Columns = Iterable[tuple[str, pa.DataType]]

_NULLABLE: Final = frozenset(
    {
        *("gas_per_byte", "price", "l1_gas", "l1_wei", "l1_share", "limit_share"),
        *(f"{measure}_p{percent}" for measure in ("gas", "wei") for percent in (50, 95, 99)),
    }
)

_MEASURES: Final = (
    ("transactions", _INT),
    ("messages", _INT),
    ("payload_bytes", _INT),
    ("calldata_bytes", _INT),
    ("gas", _INT),
    ("message_gas", _INT),
    ("gas_per_byte", _RATIO),
    ("wei", tables.WEI),
    ("price", _PRICE),
    ("l1_gas", _INT),
    ("l1_wei", tables.WEI),
    ("paid_wei", tables.WEI),
    ("l1_share", _SHARE),
    ("failed", _INT),
    ("failed_gas", _INT),
    ("failed_wei", tables.WEI),
    ("shared", _INT),
    ("shared_messages", _INT),
    ("shared_bytes", _INT),
    ("shared_gas", _INT),
    ("shared_wei", tables.WEI),
    ("gas_p50", _INT),
    ("gas_p95", _INT),
    ("gas_p99", _INT),
    ("wei_p50", tables.WEI),
    ("wei_p95", tables.WEI),
    ("wei_p99", tables.WEI),
)

_LIMITS: Final = (
    ("blocks", _INT),
    ("gas_limit", tables.WEI),
    ("chain_gas", tables.WEI),
    ("limit_share", _SHARE),
)

_PLACE: Final = (
    ("block_number", _INT),
    ("transaction_hash", pa.binary()),
    ("contract", pa.string()),
    ("function", pa.string()),
    ("payer", pa.binary()),
)


def _table(name: str, *columns: tuple[str, pa.DataType], nullable: str = "") -> pa.Schema:
    may_be_null = _NULLABLE | set(nullable.split())
    metadata = {"chainkit.table": f"cost/{name}", "chainkit.schema_version": str(SCHEMA_VERSION)}
    fields = [pa.field(column, type_, column in may_be_null) for column, type_ in columns]
    return pa.schema(fields, metadata=metadata)


TABLES: Final = {
    "total": _table("total", *_MEASURES),
    "contracts": _table("contracts", ("contract", pa.string()), *_MEASURES),
    "functions": _table(
        "functions", ("contract", pa.string()), ("function", pa.string()), *_MEASURES
    ),
    "payers": _table("payers", ("payer", pa.binary()), *_MEASURES),
    "hours": _table("hours", ("hour", _INT), *_MEASURES, *_LIMITS),
    "days": _table("days", ("day", _INT), *_MEASURES, *_LIMITS),
    "sizes": _table(
        "sizes",
        ("contract", pa.string()),
        ("size_from", _INT),
        ("size_below", _INT),
        *_MEASURES,
    ),
    "blocks": _table(
        "blocks",
        ("number", _INT),
        ("timestamp", _INT),
        ("transactions", _INT),
        ("messages", _INT),
        ("gas", _INT),
        ("gas_limit", _INT),
        ("gas_used", _INT),
        ("limit_share", _SHARE),
    ),
    "variants": _table(
        "variants",
        ("variant", pa.string()),
        ("rules", pa.string()),
        ("size_from", _INT),
        ("size_below", _INT),
        ("messages", _INT),
        ("payload_bytes", _INT),
        ("gas", _INT),
        ("wei", tables.WEI),
        ("capped", _INT),
        ("observed_gas", _INT),
        ("observed_wei", tables.WEI),
        ("gas_ratio", _RATIO),
        nullable="size_from size_below gas_ratio",
    ),
    "shared": _table(
        "shared",
        *_PLACE,
        ("messages", _INT),
        ("payload_bytes", _INT),
        ("gas", _INT),
        ("paid_wei", tables.WEI),
    ),
    "failed": _table(
        "failed", *_PLACE, ("calldata_bytes", _INT), ("gas", _INT), ("paid_wei", tables.WEI)
    ),
    "outliers": _table(
        "outliers",
        *_PLACE,
        ("size_from", _INT),
        ("payload_bytes", _INT),
        ("gas", _INT),
        ("gas_median", _INT),
        ("gas_deviation", _INT),
        ("least_gas", _INT),
        ("most_gas", _INT),
    ),
    "samples": _table(
        "samples",
        ("transaction_hash", pa.binary()),
        ("contract", pa.string()),
        ("payload_bytes", _INT),
        ("gas", _INT),
    ),
}
"""Every table by its name; docs/cost.md explains each column."""

CUTS: Final = {
    "total": (),
    "contracts": ("contract",),
    "functions": ("contract", "function"),
    "payers": ("payer",),
    "hours": ("hour",),
    "days": ("day",),
    "sizes": ("contract", "size_from"),
}
"""The keys of each cut. ``sizes`` holds the messages that were alone in their transaction."""

SORTED_BY: Final = {
    **CUTS,
    "blocks": ("number",),
    "variants": ("variant", "rules", "size_from"),
    "shared": ("block_number", "transaction_hash"),
    "failed": ("block_number", "transaction_hash"),
    "outliers": ("block_number", "transaction_hash"),
    "samples": ("transaction_hash",),
}
"""The key of each table's rows, and their order."""

RATIOS: Final = {
    "gas_per_byte": ("message_gas", "payload_bytes", RATIO_DIGITS),
    "price": ("wei", "gas", PRICE_DIGITS),
    "l1_share": ("l1_wei", "paid_wei", SHARE_DIGITS),
    "limit_share": ("gas", "gas_limit", SHARE_DIGITS),
    "gas_ratio": ("gas", "observed_gas", RATIO_DIGITS),
}
"""Columns that are a quotient of two integers: numerator, denominator, digits. Null where the
denominator is 0, or the chain has no such number."""
