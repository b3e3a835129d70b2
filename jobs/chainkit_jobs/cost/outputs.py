"""What the job leaves behind: a folder of tables, and a summary in exact numbers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from chainkit import __version__
from chainkit.errors import StoreError
from chainkit_jobs.cost.cuts import PERCENTILES, PERCENTS
from chainkit_jobs.cost.headroom import MessageTotals, headroom
from chainkit_jobs.cost.job import CostTables, busiest
from chainkit_jobs.cost.outliers import FACTOR, LEAST_MESSAGES, LEAST_PERCENT
from chainkit_jobs.cost.ratios import ratio
from chainkit_jobs.cost.schema import RATIO_DIGITS, RATIOS, SCHEMA_VERSION, TABLES
from chainkit_jobs.cost.variants import RULES, TRANSACTION_GAS_CAP
from chainkit_jobs.cost.writing import Row, complete_row, json_text, table_rows, write_table
from chainkit_jobs.outputs import check_free

_BUSIEST: Final = {"block": ("blocks", "number"), "hour": ("hours", "hour"), "day": ("days", "day")}
_BUSY: Final = ("transactions", "messages", "gas", "gas_limit", "limit_share")
_COUNTS: Final = ("messages", "payload_bytes", "gas", "capped", "observed_gas")
_AMOUNTS: Final = ("wei", "observed_wei")
_UNKNOWN: Final = frozenset({"l1_gas", "l1_wei", *PERCENTILES, *RATIOS})
"""What nothing is said of where there is no transaction."""


def write_costs(directory: Path, costs: CostTables) -> dict[str, Any]:
    """Write all tables beside ``directory``, rename them into place, and return the summary.

    The same export gives the same bytes, however Spark divides the work. Raises StoreError if the
    folder exists or cannot be written.
    """
    check_free(directory)
    partial = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        total = _total(costs)
        counts = {"total": write_table(partial, "total", [total])} | {
            name: write_table(partial, name, table_rows(name, costs.frames[name]))
            for name in TABLES
            if name != "total"
        }
        summary = _summary(costs, total, counts)
        (partial / "summary.json").write_text(json_text(summary, indent=2) + "\n")
        partial.rename(directory)
    except OSError as error:
        subject = f"output {directory}"
        raise StoreError(subject, "a folder that can be written", error.strerror) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return summary


def _total(costs: CostTables) -> Row:
    for row in table_rows("total", costs.frames["total"]):
        return row
    # Spark groups nothing where there is nothing, not even under no key at all.
    schema = TABLES["total"]
    return {field.name: None if field.name in _UNKNOWN else 0 for field in schema}


def _summary(costs: CostTables, total: Row, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the summary: the input, the rules, the totals, the variants and the headroom."""
    manifest = costs.chain.manifest
    messages = MessageTotals(
        total["messages"], total["gas"], total["message_gas"], total["gas_p95"]
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"chainkit {__version__}",
        "chain": {
            "chain_id": manifest.chain_id,
            "genesis_hash": manifest.genesis_hash,
            "contracts": dict(manifest.contracts),
            "from_block": manifest.from_block,
            "to_block": manifest.to_block,
            "to_block_hash": manifest.to_block_hash,
            "manifest_sha256": costs.chain.manifest_digest,
        },
        "rules": {
            "percentiles": {"method": "nearest rank", "percents": list(PERCENTS)},
            "outliers": {
                "deviations": FACTOR,
                "least_deviation_percent_of_median": LEAST_PERCENT,
                "least_messages": LEAST_MESSAGES,
            },
            "variants": {"hardforks": list(RULES), "transaction_gas_cap": TRANSACTION_GAS_CAP},
        },
        "rows": dict(counts),
        "total": total,
        "variants": variant_totals(table_rows("variants", costs.frames["variants"])),
        "headroom": headroom(costs.block_totals, messages),
        "busiest": {what: _busiest(costs, *where) for what, where in _BUSIEST.items()},
    }


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


def _busiest(costs: CostTables, table: str, key: str) -> dict[str, Any] | None:
    row = busiest(costs.frames[table], key)
    if row is None:
        return None
    whole = complete_row(TABLES[table], row)
    return {name: whole[name] for name in (key, *_BUSY)}
