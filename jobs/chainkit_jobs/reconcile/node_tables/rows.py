"""Rows of findings about a node's tables; of what differs everywhere, only the first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.finding_rows import COLUMNS, finding_row

LISTED: Final = 1000
"""Most findings of one kind that are listed for a node: a table that is wrong in each of a million
rows is one fault, and its first finding has the number."""

_IDENTITY: Final = (
    "code",
    "node_id",
    "originator_id",
    "sequence_id",
    "block_number",
    "log_index",
    "transaction_hash",
    "expected_digest",
)
"""Columns that distinguish findings about rows."""

_BINARY: Final = frozenset({"transaction_hash", "expected_digest"})


def finding(code: Code, node_id: int, detail: str, **columns: Any) -> dict[str, Any]:
    """Return a row about a node, as ``finding_row`` does."""
    return finding_row(code, detail, node_id=node_id, **columns)


def listed(found: DataFrame, most: int = LISTED) -> list[dict[str, Any]]:
    """Bring findings to the driver, no more than ``most`` of each kind per node.

    ``found`` has some columns of evidence.rows.COLUMNS, among them ``detail``, and ``kind``: text
    that rows with the same fault have in common. The first finding in the order of the sequences
    has the number of all where not all are listed.
    """
    each = found.groupBy(*_IDENTITY).agg(sf.min(sf.struct("detail", "kind")).alias("what"))
    same = Window.partitionBy("node_id", "code", "what.kind")
    ranked = each.withColumns(
        {
            "position": sf.row_number().over(same.orderBy("originator_id", "sequence_id")),
            "total": sf.count("*").over(same),
            "last": sf.max("sequence_id").over(same),
        }
    )
    rows = ranked.filter(sf.col("position") <= most).select("*", "what.detail").drop("what")
    return [_listed_row(row.asDict(), most) for row in rows.collect()]


def _listed_row(row: dict[str, Any], most: int) -> dict[str, Any]:
    position, total, last = (row.pop(name) for name in ("position", "total", "last"))
    if position == 1 and total > most:
        rest = f"the first of {total} such, up to sequence {int(last)}; {most} are listed"
        row["detail"] = f"{row['detail']} ({rest})"
    for name in _BINARY:
        row[name] = None if row[name] is None else bytes(row[name])
    return dict.fromkeys(COLUMNS) | row


def in_words(parts: Iterable[object]) -> str:
    """Join what differs into one detail."""
    return "; ".join(map(str, parts))
