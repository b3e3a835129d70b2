"""Whole exports of nodes, with every table: what an honest node holds, and rows to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from chainkit.protocol.envelope import quarantine_reason
from chainkit.protocol.events import NODE_UPDATED_TOPIC, decode_node_updated
from chainkit.protocol.served_topic import served_topic
from chainkit.signatures import SigningKey
from chainkit.types import Node
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.reading import SCHEMAS
from chainkit_jobs.sources import log_from_row, read_export
from support.audit.audit_exports import (
    FIRST_BLOCK,
    GENESIS,
    GROUP_MESSAGES,
    IDENTITY_UPDATES,
    LAST_BLOCK,
    NODE_REGISTRY,
    Post,
    hash_of,
    payload_log,
    time_of,
)
from support.audit.export_folders import write_folder
from support.chain_times import chain_ns

Row = dict[str, Any]
Tables = dict[str, list[Row]]


def place_of(post: Post) -> Row:
    """Return the columns that envelopes, quarantine and journal share."""
    log = payload_log(post)
    names = ("block_number", "block_hash", "transaction_hash", "transaction_index", "log_index")
    return {
        "originator_id": 0,
        "sequence_id": Decimal(post.sequence_id),
        **{name: log[name] for name in names},
    }


def envelope_row(post: Post, key: SigningKey) -> Row:
    return place_of(post) | {
        "originator_ns": chain_ns(time_of(post.block), post.sequence_id),
        "topic": served_topic(post.event.kind, post.event.identifier, post.payload),
        "envelope": post.envelope(key),
    }


def quarantine_row(post: Post) -> Row:
    return place_of(post) | {
        "contract": IDENTITY_UPDATES if post.is_update else GROUP_MESSAGES,
        "identifier": post.event.identifier,
        "payload": post.payload,
        "reason": str(quarantine_reason(post.event)),
    }


def journal_row(
    post: Post, key: SigningKey, outcome: str, moved_to: int | None = None, reorg_id: int = 1
) -> Row:
    """An entry about a post of a branch that is gone, or taken back and kept."""
    is_quarantined = quarantine_reason(post.event) is not None
    return place_of(post) | {
        "reorg_id": reorg_id,
        "envelope": None if is_quarantined else post.envelope(key),
        "outcome": outcome,
        "new_sequence_id": None if moved_to is None else Decimal(moved_to),
    }


def registry_rows(chain: Path) -> list[Row]:
    """Return the registry's history from the logs of a chain export."""
    rows = []
    for row in pq.read_table(chain / "logs.parquet").to_pylist():
        if row["address"] != NODE_REGISTRY or row["topics"][:1] != [NODE_UPDATED_TOPIC]:
            continue
        node = decode_node_updated(log_from_row(row))
        names = ("block_number", "log_index", "block_hash", "transaction_hash")
        rows.append(
            {name: row[name] for name in names}
            | {
                "timestamp": time_of(row["block_number"]),
                "node_id": node.node_id,
                "signing_key": node.signing_key,
                "http_address": node.http_address.encode(),
                "is_enabled": node.is_enabled,
            }
        )
    return rows


def honest_tables(
    posts: Sequence[Post], key: SigningKey, history: Sequence[Row] = (), to_block: int = LAST_BLOCK
) -> Tables:
    """Return all tables of a node without faults and reorgs, up to a block."""
    held = [post for post in posts if post.block <= to_block]
    return {
        "envelopes": [envelope_row(p, key) for p in held if quarantine_reason(p.event) is None],
        "quarantine": [quarantine_row(p) for p in held if quarantine_reason(p.event) is not None],
        "journal": [],
        "registry_updates": [dict(row) for row in history],
    }


def write_tables(
    directory: Path,
    node_id: int,
    key: SigningKey,
    tables: Mapping[str, Sequence[Row]],
    **about: Any,
) -> NodeExport:
    """Write a node's export; ``about`` overrides fields of the manifest."""
    to_block = about.get("to_block", LAST_BLOCK)
    registry = {
        "chain_id": 31337,
        "address": "0x" + NODE_REGISTRY.hex(),
        "block_number": LAST_BLOCK,
        "block_hash": "0x" + hash_of(LAST_BLOCK).hex(),
    }
    manifest = {
        "kind": "node",
        "chain_id": 31337,
        "genesis_hash": "0x" + GENESIS.hex(),
        "contracts": {
            "GroupMessages": "0x" + GROUP_MESSAGES.hex(),
            "IdentityUpdates": "0x" + IDENTITY_UPDATES.hex(),
        },
        "from_block": FIRST_BLOCK,
        "to_block": to_block,
        "to_block_hash": "0x" + hash_of(to_block).hex(),
        "node_public_key": "0x" + key.public_key.hex(),
        "last_reorg": max((row["reorg_id"] for row in tables.get("journal", [])), default=0),
        "registry": registry,
    }
    schemas = {name: SCHEMAS[name] for name in tables}
    chunks = {name: [rows] for name, rows in tables.items()}
    write_folder(directory, schemas, chunks, **manifest | about)
    node = Node(node_id, key.public_key, "", is_enabled=True)
    return NodeExport(node, read_export(directory, "node"))
