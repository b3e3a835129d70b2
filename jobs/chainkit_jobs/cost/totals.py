"""Total costs of a chain: the figures of the summary and of the audit's report."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from chainkit_jobs.cost.cuts import PERCENTILES
from chainkit_jobs.cost.headroom import MessageTotals, headroom
from chainkit_jobs.cost.job import CostTables, busiest
from chainkit_jobs.cost.ratios import ratio
from chainkit_jobs.cost.schema import RATIO_DIGITS, RATIOS, TABLES
from chainkit_jobs.cost.writing import Row, complete_row

_BUSIEST: Final = {"block": ("blocks", "number"), "hour": ("hours", "hour"), "day": ("days", "day")}
_BUSY: Final = ("transactions", "messages", "gas", "gas_limit", "limit_share")
_COUNTS: Final = ("messages", "payload_bytes", "gas", "capped", "observed_gas")
_AMOUNTS: Final = ("wei", "observed_wei")
_UNKNOWN: Final = frozenset({"l1_gas", "l1_wei", *PERCENTILES, *RATIOS})
"""Figures that are left out where there is no transaction."""


def total_row(rows: Iterable[Row]) -> Row:
    """Return the one row of the table ``total``, with zeros where there is no transaction."""
    for row in rows:
        return row
    # Spark groups nothing where there is nothing, not even under no key at all.
    schema = TABLES["total"]
    return {field.name: None if field.name in _UNKNOWN else 0 for field in schema}


def headroom_of(costs: CostTables, total: Row) -> dict[str, Any]:
    """Return how many messages the chain could take; see headroom.headroom."""
    messages = MessageTotals(
        total["messages"], total["gas"], total["message_gas"], total["gas_p95"]
    )
    return headroom(costs.block_totals, messages)


def variant_totals(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Add the size classes of each variant and set of rules up, in the order of the rows."""
    totals: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        sums = totals.setdefault((row["variant"], row["rules"]), {})
        for name in (*_COUNTS, *_AMOUNTS):
            sums[name] = sums.get(name, 0) + int(row[name])
    return [
        {"variant": variant, "rules": rules}
        | {name: sums[name] for name in _COUNTS}
        | {name: Decimal(sums[name]) for name in _AMOUNTS}
        | {"gas_ratio": ratio(sums["gas"], sums["observed_gas"], RATIO_DIGITS)}
        for (variant, rules), sums in totals.items()
    ]


def busiest_times(costs: CostTables) -> dict[str, Row | None]:
    """Return the block, hour and day with the most gas, the earliest of several."""
    return {what: busiest_time(costs, what) for what in _BUSIEST}


def busiest_time(costs: CostTables, what: str) -> Row | None:
    """Return the ``block``, ``hour`` or ``day`` with the most gas, the earliest of several."""
    table, key = _BUSIEST[what]
    row = busiest(costs.frames[table], key)
    return None if row is None else busy_row(what, complete_row(TABLES[table], row))


def busy_row(what: str, row: Row) -> Row:
    """Return the fields of a ``block``, ``hour`` or ``day`` row that show how busy it was."""
    return {name: row[name] for name in (_BUSIEST[what][1], *_BUSY)}
