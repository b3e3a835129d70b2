"""The coverage over the blocks: per node and bin of blocks, the payloads that were compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from chainkit_jobs.reconcile.bins import Bins
from chainkit_jobs.reconcile.screening.results import UnitSummary, rebinned

SCHEMA_VERSION: Final = 1
"""The version increases when a column changes its name, type or meaning."""

_INT: Final = pa.int64()

COUNTS: Final = ("expected", "matched", "missing", "wrong", "outside")

COVERAGE: Final = pa.schema(
    [
        pa.field(name, _INT, nullable=False)
        for name in (
            "node_id",
            "first_block",
            "last_block",
            *COUNTS,
        )
    ],
    metadata={
        "chainkit.table": "coverage",
        "chainkit.schema_version": str(SCHEMA_VERSION),
    },
)
"""One row per node that was compared and bin of blocks, first and last block included; a bin in
which the chain holds no payload has none. ``expected`` counts the valid payloads of these blocks.
A payload is

- ``matched``: served once or more, with the chain's bytes and the node's signature;
- ``missing``: not served, though the node was bound to;
- ``wrong``: served with other bytes, a wrong signature or unreadable. Malformed payloads that were
  served count here too, beyond ``expected``;
- ``outside``: not served, in blocks that the node's export does not speak of."""


def screened_coverage(units: Iterable[UnitSummary], bins: Bins) -> list[dict[str, int]]:
    """Return what screening found right, or not asked for (columns of COVERAGE)."""
    found = []
    for unit in units:
        for node_id, count in unit.nodes.items():
            matched = rebinned(count.matched, bins.step)
            for first, valid in rebinned(count.valid, bins.step).items():
                right = matched.get(first, 0)
                nothing = dict.fromkeys(COVERAGE.names, 0)
                row = {"node_id": node_id, "first_block": first, "expected": valid}
                found.append(nothing | row | {"matched": right, "outside": valid - right})
    return summed([found], bins)


def summed(
    parts: Iterable[Iterable[Mapping[str, int]]],
    bins: Bins,
    without: Iterable[Mapping[str, int]] = (),
) -> list[dict[str, int]]:
    """Add up rows of COVERAGE by node and bin, less those that were counted twice."""
    totals: dict[tuple[int, int], Counter[str]] = {}
    for sign, rows in (*((1, part) for part in parts), (-1, without)):
        for row in rows:
            first = bins.begin(row["first_block"])
            total = totals.setdefault((row["node_id"], first), Counter())
            total.update({name: sign * row[name] for name in COUNTS})
    return [
        {
            "node_id": node_id,
            "first_block": max(first, bins.first_block),
            "last_block": min(first + bins.step - 1, bins.last_block),
            **{name: total[name] for name in COUNTS},
        }
        for (node_id, first), total in sorted(totals.items())
        if total["expected"] or total["wrong"]
    ]
