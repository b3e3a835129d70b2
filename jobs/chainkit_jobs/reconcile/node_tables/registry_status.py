"""The status of a node while payloads were posted: not registered, disabled, or behind.

The findings are notes, which accuse nobody: they help to read the other findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from chainkit.types import Node
from chainkit_jobs.administration.contradiction import LogPosition
from chainkit_jobs.administration.replay import Administration
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.chain_side import ChainSide
from chainkit_jobs.reconcile.node_tables.reading import read_tables
from chainkit_jobs.reconcile.node_tables.rows import finding

_COLUMNS: Final = "node_id long, code string, first long, last long, log_index long"

_WORDS: Final = {
    Code.NODE_UNREGISTERED: "not registered yet",
    Code.NODE_DISABLED: "disabled",
    Code.NODE_BEHIND: "which its export does not reach",
}


@dataclass(frozen=True, slots=True)
class RegistryStatus:
    """Blocks, both ends included, during which a node had one status."""

    node_id: int
    code: Code
    first: int
    last: int
    log_index: int | None = None
    """Position of the event that changed the status, in the first block, where one did."""


def status_findings(
    spark: SparkSession,
    nodes: Sequence[NodeExport],
    chain: ChainSide,
    administration: Administration | None,
) -> list[dict[str, Any]]:
    """Return a note for each run of blocks with payloads during which a node had such a status.

    Without ``administration`` (see administration.replay) only for blocks beyond the exports.
    """
    found = [each for node in nodes for each in _behind(node, chain.manifest.to_block)]
    if administration is not None:
        for node in nodes:
            first = max(node.manifest.from_block, chain.manifest.from_block)
            history = administration.registry.history.get(node.node.node_id, [])
            last = node.manifest.to_block
            found += registry_statuses(node.node.node_id, history, first, last)
    if not found:
        return []
    lowest, highest = min(each.first for each in found), max(each.last for each in found)
    near = chain.valid_places().filter(sf.col("block_number").between(lowest, highest))
    posted = _counts(spark, near, found, [])
    passed = [each for each in found if posted.get(each)]
    registered = [each for each in passed if each.code != Code.NODE_BEHIND]
    served = {}
    if registered:
        rows = read_tables(spark, nodes, "envelopes", ("block_number",))
        served = _counts(spark, rows, registered, ["node_id"])
    return [_finding(each, posted[each], served.get(each, 0)) for each in passed]


def registry_statuses(
    node_id: int, history: Sequence[tuple[LogPosition, Node]], first: int, last: int
) -> Iterator[RegistryStatus]:
    """Return the blocks from ``first`` to ``last`` at which the registry had no enabled node.

    ``history`` has the node's entries in the chain's order. A block's last event decides for the
    block.
    """
    changes = {block: (log_index, node.is_enabled) for (block, log_index), node in history}
    changes = {block: change for block, change in changes.items() if block <= last}
    # One more, after all blocks, closes the last run.
    changes[last + 1] = (0, True)
    code: Code | None = Code.NODE_UNREGISTERED
    since, event = first, None
    for block, (log_index, is_enabled) in sorted(changes.items()):
        following = None if is_enabled else Code.NODE_DISABLED
        if following == code:
            continue
        if code is not None and max(since, first) < block:
            is_within = event is not None and since >= first
            yield RegistryStatus(
                node_id, code, max(since, first), block - 1, event if is_within else None
            )
        code, since, event = following, block, log_index


def _behind(node: NodeExport, to_block: int) -> Iterator[RegistryStatus]:
    if node.manifest.to_block < to_block:
        yield RegistryStatus(
            node.node.node_id, Code.NODE_BEHIND, node.manifest.to_block + 1, to_block
        )


def _counts(
    spark: SparkSession, rows: DataFrame, statuses: Sequence[RegistryStatus], key: list[str]
) -> dict[RegistryStatus, int]:
    """Count the rows (``block_number``, and ``key``) in each run of blocks."""
    runs = spark.createDataFrame([astuple(each) for each in statuses], _COLUMNS)
    is_within = sf.col("block_number").between(sf.col("first"), sf.col("last"))
    for name in key:
        is_within = is_within & (rows[name] == runs[name])
    names = RegistryStatus.__dataclass_fields__
    counted = (
        rows.join(sf.broadcast(runs), is_within, "inner")
        .groupBy(*(runs[name] for name in names))
        .count()
        .collect()
    )
    return {
        RegistryStatus(**{name: row[name] for name in names} | {"code": Code(row["code"])}): row[
            "count"
        ]
        for row in counted
    }


def _finding(status: RegistryStatus, posted: int, served: int) -> dict[str, Any]:
    first, last = status.first, status.last
    blocks = f"block {first}" if first == last else f"blocks {first} to {last}"
    detail = f"{blocks}, {_WORDS[status.code]}: {posted} valid payloads"
    if status.code != Code.NODE_BEHIND:
        detail += f", of which it serves {served}"
    return finding(
        status.code,
        status.node_id,
        detail,
        block_number=first,
        log_index=status.log_index,
    )
