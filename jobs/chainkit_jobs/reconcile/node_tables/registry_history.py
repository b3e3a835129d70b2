"""REGISTRY_HISTORY_CONTRADICTS: the registry as a node followed it, and as the chain holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from chainkit.errors import MalformedLog
from chainkit.exports.tables import REGISTRY_UPDATES
from chainkit.protocol.events import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit_jobs.administration.contradiction import LogPosition
from chainkit_jobs.administration.replay import REGISTRY
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.reading import read_registry_rows
from chainkit_jobs.reconcile.node_tables.rows import finding, in_words
from chainkit_jobs.sources import Export, log_from_row, read_blocks, read_logs

_COMPARED: Final = tuple(
    name for name in REGISTRY_UPDATES.names if name not in ("block_number", "log_index")
)
_SHOWN: Final = 150
"""Characters of a value that a detail repeats: a key is shown in full, an address may be long."""

Updates = Mapping[LogPosition, Mapping[str, object]]
"""Position of each NodeUpdated to its columns of chainkit.exports.tables.REGISTRY_UPDATES."""


def read_chain_updates(
    spark: SparkSession, chain: Export, numbers: Sequence[int]
) -> tuple[Updates, Mapping[int, str]]:
    """Return the registry's updates on the chain, and the hashes (0x hex) of some of its blocks.

    Persons cause these events: the few rows are decoded here. A row that does not decode is
    CHAIN_EVENTS_CONTRADICT, and left out.
    """
    blocks = read_blocks(spark, chain)
    times = blocks.select(
        sf.col("number").alias("block_number"), sf.col("hash").alias("block_hash"), "timestamp"
    )
    is_update = (sf.col("address") == sf.lit(chain.contract(REGISTRY))) & (
        sf.get("topics", sf.lit(0)) == sf.lit(NODE_UPDATED_TOPIC)
    )
    logs = read_logs(spark, chain).filter(is_update)
    updates = {}
    for row in logs.join(times, ["block_number", "block_hash"], "inner").collect():
        log = log_from_row(row.asDict())
        try:
            node = decode_node_updated(log)
        except MalformedLog:
            continue
        updates[log.block_number, log.log_index] = {
            "block_hash": log.block_hash,
            "transaction_hash": log.transaction_hash,
            "timestamp": row["timestamp"],
            "node_id": node.node_id,
            "signing_key": node.signing_key,
            "http_address": node.http_address.encode(errors="surrogateescape"),
            "is_enabled": node.is_enabled,
        }
    named = blocks.filter(sf.col("number").isin(list(numbers))).select("number", "hash").collect()
    return updates, {row["number"]: "0x" + bytes(row["hash"]).hex() for row in named}


def not_comparable(chain: Export, node: NodeExport) -> str | None:
    """Return why a node's history of the registry cannot be held against the chain, or None."""
    followed = node.manifest.registry
    if followed is None:
        return "its manifest names no registry"
    address = "0x" + chain.contract(REGISTRY).hex()
    if followed["chain_id"] != chain.manifest.chain_id or followed["address"].lower() != address:
        return f"it follows {followed['address']} on chain {followed['chain_id']}, not {address}"
    first, last = chain.manifest.from_block, chain.manifest.to_block
    if not first <= followed["block_number"] <= last:
        return (
            f"it ends at block {followed['block_number']}, the chain export holds {first} to {last}"
        )
    return None


def history_findings(
    chain: Export, node: NodeExport, updates: Updates, hashes: Mapping[int, str]
) -> tuple[list[dict[str, Any]], str | None]:
    """Compare a node's history up to the block that its manifest names (see not_comparable).

    Returns findings, and the reason where the history ends on another fork and was not compared.
    """
    followed = node.manifest.registry or {}
    last = followed["block_number"]
    if hashes.get(last) != followed["block_hash"].lower():
        got = hashes.get(last, "no block")
        return (
            [],
            f"it ends on another fork: its block {last} is {followed['block_hash']}, not {got}",
        )
    first = chain.manifest.from_block
    rows: dict[LogPosition, list[Mapping[str, object]]] = {}
    for row in read_registry_rows(node):
        place = int(str(row["block_number"])), int(str(row["log_index"]))
        rows.setdefault(place, []).append(row)
    places = {place for place in updates if first <= place[0] <= last}
    # A row below the chain export's first block cannot be checked.
    places |= {place for place in rows if place[0] >= first}
    found = []
    for place in sorted(places):
        if problem := _problem(updates.get(place), rows.get(place, [])):
            found.append(_finding(node.node.node_id, place, updates.get(place), problem))
    return found, None


def _problem(
    expected: Mapping[str, object] | None, found: Sequence[Mapping[str, object]]
) -> str | None:
    if expected is None:
        return "the registry has no NodeUpdated here, and the node's history has one"
    if not found:
        return f"the node's history lacks this NodeUpdated of node {expected['node_id']}"
    if len(found) > 1:
        return f"the node's history holds this NodeUpdated {len(found)} times"
    differing = [name for name in _COMPARED if found[0][name] != expected[name]]
    return in_words(
        f"{name}: expected {_shown(expected[name])}, got {_shown(found[0][name])}"
        for name in differing
    )


def _shown(value: object) -> str:
    text = f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _finding(
    node_id: int, place: LogPosition, expected: Mapping[str, object] | None, problem: str
) -> dict[str, Any]:
    if expected is None:
        # Block and log of a finding are the chain's.
        detail = f"block {place[0]}, log {place[1]}: {problem}"
        return finding(Code.REGISTRY_HISTORY_CONTRADICTS, node_id, detail)
    return finding(
        Code.REGISTRY_HISTORY_CONTRADICTS,
        node_id,
        problem,
        block_number=place[0],
        log_index=place[1],
        transaction_hash=expected["transaction_hash"],
    )
