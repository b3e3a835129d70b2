"""The output of the job: a folder of tables, and a summary in exact numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chainkit import __version__
from chainkit_jobs.cost.cuts import PERCENTS
from chainkit_jobs.cost.job import CostTables
from chainkit_jobs.cost.outliers import FACTOR, LEAST_MESSAGES, LEAST_PERCENT
from chainkit_jobs.cost.schema import SCHEMA_VERSION, TABLES
from chainkit_jobs.cost.totals import busiest_times, headroom_of, total_row, variant_totals
from chainkit_jobs.cost.variants import RULES, TRANSACTION_GAS_CAP
from chainkit_jobs.cost.writing import Row, json_text, table_rows, write_table
from chainkit_jobs.output_folder import new_folder


def write_costs(directory: Path, costs: CostTables) -> dict[str, Any]:
    """Write all tables beside ``directory``, rename them into place, and return the summary.

    The same export gives the same bytes, however Spark divides the work. Raises StoreError if the
    folder exists or cannot be written.
    """
    with new_folder(directory) as partial:
        total = total_row(table_rows("total", costs.frames["total"]))
        counts = {"total": write_table(partial, "total", [total])} | {
            name: write_table(partial, name, table_rows(name, costs.frames[name]))
            for name in TABLES
            if name != "total"
        }
        summary = _summary(costs, total, counts)
        (partial / "summary.json").write_text(json_text(summary, indent=2) + "\n")
    return summary


def _summary(costs: CostTables, total: Row, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the summary: the input, the rules, the totals, the variants and the headroom."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"chainkit {__version__}",
        "chain": costs.chain.named(),
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
        "headroom": headroom_of(costs, total),
        "busiest": busiest_times(costs),
    }
