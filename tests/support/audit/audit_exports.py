"""Exports for an auditor, built row by row: a small chain, and nodes that serve it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import eth_abi
import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.errors import MalformedEnvelope
from chainkit.exports import tables
from chainkit.protocol.envelope import (
    parse_originator_envelope,
    sign_originator_envelope,
    unsigned_originator_envelope,
)
from chainkit.protocol.events import (
    IDENTITY_UPDATE_CREATED_TOPIC,
    MESSAGE_SENT_TOPIC,
    NODE_UPDATED_TOPIC,
    decode_node_updated,
)
from chainkit.signatures import SigningKey, keccak256
from chainkit.types import PayloadEvent, identity_update_created, message_sent
from chainkit_jobs.sources import log_from_row
from support.audit.administration import History
from support.audit.export_folders import write_folder
from support.audit.identities import GROUP_MESSAGES, IDENTITY_UPDATES, NODE_REGISTRY, key_of
from support.payloads import commit, identity_update

GENESIS = keccak256(b"genesis")
SENDER = b"\x44" * 20
FIRST_BLOCK, LAST_BLOCK = 1, 20
GROUP, INBOX = b"\x01" * 32, b"\x02" * 32

Row = dict[str, Any]


def hash_of(number: int, fork: str = "main") -> bytes:
    return keccak256(f"{fork} block {number}".encode())


def time_of(number: int) -> int:
    return 1_700_000_000 + 2 * number


@dataclass(frozen=True)
class Post:
    """A payload on the chain, and the transaction that brought it."""

    sequence_id: int
    block: int
    payload: bytes
    is_update: bool = False
    transaction: bytes = b""
    gas: int = 50_000
    group: bytes = GROUP

    @property
    def transaction_hash(self) -> bytes:
        return self.transaction or keccak256(f"transaction {self.sequence_id}".encode())

    @property
    def event(self) -> PayloadEvent:
        event = identity_update_created if self.is_update else message_sent
        return event(INBOX if self.is_update else self.group, self.payload, self.sequence_id)

    @property
    def unsigned(self) -> bytes:
        return unsigned_originator_envelope(self.event, time_of(self.block))

    def envelope(self, key: SigningKey) -> bytes:
        return sign_originator_envelope(self.unsigned, self.transaction_hash, key)


MALFORMED_SEQUENCE = 4


def base_posts() -> list[Post]:
    """Eight payloads in the blocks 10 to 17, the fourth of them malformed."""
    posts = [
        Post(n, 9 + n, commit(GROUP, size=100 * n, seed=n), gas=50_000 + 10 * n)
        for n in range(1, 9)
    ]
    posts[1] = replace(posts[1], is_update=True, payload=identity_update(INBOX))
    posts[MALFORMED_SEQUENCE - 1] = replace(posts[MALFORMED_SEQUENCE - 1], payload=b"\xff not one")
    return posts


def honest(posts: Sequence[Post], key: SigningKey) -> list[bytes]:
    return [post.envelope(key) for post in posts if post.sequence_id != MALFORMED_SEQUENCE]


def registered(
    node_id: int, block: int = 2, log_index: int = 0, key: SigningKey | None = None, **node: Any
) -> Row:
    """A NodeUpdated log."""
    public_key = (key or key_of(node_id)).public_key
    entry = (public_key, f"https://node{node_id}.example", node.get("is_enabled", True))
    data = eth_abi.encode(("uint256", "(bytes,string,bool)"), (node_id, entry))
    transaction = keccak256(f"registry {node_id} {block}".encode())
    return log_row(NODE_REGISTRY, NODE_UPDATED_TOPIC, data, block, transaction, log_index)


def log_row(
    address: bytes, topic: bytes, data: bytes, block: int, transaction: bytes, log_index: int
) -> Row:
    return {
        "block_number": block,
        "block_hash": hash_of(block),
        "transaction_hash": transaction,
        "transaction_index": 0,
        "log_index": log_index,
        "address": address,
        "topics": [topic],
        "data": data,
    }


def payload_log(post: Post) -> Row:
    event = post.event
    data = eth_abi.encode(
        ("bytes32", "bytes", "uint64"), (event.identifier, event.payload, event.sequence_id)
    )
    address = IDENTITY_UPDATES if post.is_update else GROUP_MESSAGES
    topic = IDENTITY_UPDATE_CREATED_TOPIC if post.is_update else MESSAGE_SENT_TOPIC
    # Several posts of a test may share a block, and with the registry's logs: any order that grows
    # with the sequence will do.
    index = 1000 + post.sequence_id
    return log_row(address, topic, data, post.block, post.transaction_hash, index)


def transaction_row(post: Post) -> Row:
    event = post.event
    function = "addIdentityUpdate" if post.is_update else "addMessage"
    selector = keccak256(f"{function}(bytes32,bytes)".encode())[:4]
    data = selector + eth_abi.encode(("bytes32", "bytes"), (event.identifier, event.payload))
    row: Row = dict.fromkeys(tables.TRANSACTIONS.names)
    return row | {
        "block_number": post.block,
        "block_hash": hash_of(post.block),
        "transaction_hash": post.transaction_hash,
        "transaction_index": 0,
        "type": 2,
        "chain_id": Decimal(31337),
        "nonce": Decimal(post.sequence_id),
        "from_address": SENDER,
        "to_address": IDENTITY_UPDATES if post.is_update else GROUP_MESSAGES,
        "value": Decimal(0),
        "input": data,
        "gas_limit": 2 * post.gas,
        "max_fee_per_gas": Decimal(2 * 10**9),
        "max_priority_fee_per_gas": Decimal(1),
    }


def receipt_row(post: Post) -> Row:
    row: Row = dict.fromkeys(tables.RECEIPTS.names)
    return row | {
        "block_number": post.block,
        "block_hash": hash_of(post.block),
        "transaction_hash": post.transaction_hash,
        "transaction_index": 0,
        "type": 2,
        "status": 1,
        "from_address": SENDER,
        "to_address": IDENTITY_UPDATES if post.is_update else GROUP_MESSAGES,
        "gas_used": post.gas,
        "cumulative_gas_used": post.gas,
        "effective_gas_price": 10**9 + 1,
    }


def block_row(number: int) -> Row:
    row: Row = dict.fromkeys(tables.BLOCKS.names)
    return row | {
        "number": number,
        "hash": hash_of(number),
        "parent_hash": hash_of(number - 1),
        "timestamp": time_of(number),
        "receipts_root": b"\x00" * 32,
        "logs_bloom": b"\x00" * 256,
        "gas_limit": 30_000_000,
        "gas_used": 0,
        "base_fee_per_gas": 10**9,
        "transaction_count": 0,
    }


Act = Callable[[History], None]


def administration(registry: Sequence[Row], acts: Mapping[int, Act]) -> list[Row]:
    """Return the contracts' deployment, and each NodeUpdated after its announcing events.

    ``acts`` are further events by block.
    """
    history = History(block=FIRST_BLOCK)
    history.deploy()
    known: set[int] = set()
    for row in sorted(registry, key=lambda row: (row["block_number"], row["log_index"])):
        node = decode_node_updated(log_from_row(row))
        history.block = row["block_number"]
        entry = {"key": node.signing_key, "is_enabled": node.is_enabled}
        if node.node_id in known:
            history.set_status(node.node_id, **entry)
        else:
            history.add_node(node.node_id, **entry)
        known.add(node.node_id)
    for block, act in acts.items():
        history.block = block
        act(history)
    return [
        log._asdict() | {"topics": list(log.topics), "block_hash": hash_of(log.block_number)}
        for log in history.logs
    ]


def write_chain(
    directory: Path,
    posts: Sequence[Post],
    registry: Sequence[Row],
    acts: Mapping[int, Act] | None = None,
    **about: Any,
) -> Path:
    """Write a chain export; ``about`` overrides fields of the manifest."""
    about = {"from_block": FIRST_BLOCK, "to_block": LAST_BLOCK} | about
    numbers = range(about["from_block"], about["to_block"] + 1)
    held = [post.sequence_id for post in posts if post.block in numbers]
    about = {
        "first_block": FIRST_BLOCK,
        "sequence_before": min(held, default=1) - 1,
        "sequence_after": max(held, default=0),
    } | about
    logs = [*administration(registry, acts or {}), *map(payload_log, posts)]
    sent = {post.transaction_hash: post for post in posts}
    rows = {
        "blocks": [block_row(number) for number in numbers],
        "transactions": [transaction_row(post) for post in sent.values()],
        "receipts": [receipt_row(post) for post in sent.values()],
        "logs": [row for row in logs if row["block_number"] in numbers],
    }
    chunks = {name: [table] for name, table in rows.items()}
    write_folder(directory, tables.CHAIN_TABLES, chunks, **_manifest("chain", about))
    return directory


def write_node(
    directory: Path,
    envelopes: Sequence[bytes],
    key: SigningKey,
    *,
    is_table_right: bool = False,
    **about: Any,
) -> Path:
    """Write a node's export; ``about`` overrides fields of the manifest.

    The columns beside the raw envelopes are wrong on purpose: the audit must not trust them. If
    ``is_table_right``, each row claims its true sequence.
    """
    about = {"node_public_key": "0x" + key.public_key.hex()} | about
    rows = [_envelope_row(n, e) for n, e in enumerate(envelopes, start=1)]
    if is_table_right:
        rows = [row | {"sequence_id": _borne(row)} for row in rows]
    schemas = {"envelopes": tables.ENVELOPES}
    write_folder(directory, schemas, {"envelopes": [rows]}, **_manifest("node", about))
    return directory


def _borne(row: Row) -> Decimal:
    try:
        return Decimal(parse_originator_envelope(row["envelope"]).sequence_id)
    except MalformedEnvelope:
        return Decimal(row["sequence_id"])


def _envelope_row(position: int, envelope: bytes) -> Row:
    return {
        "originator_id": 7,
        "sequence_id": Decimal(1000 + position),
        "block_number": 0,
        "block_hash": b"",
        "transaction_hash": b"",
        "transaction_index": 0,
        "log_index": 0,
        "originator_ns": 0,
        "topic": b"",
        "envelope": envelope,
    }


def _manifest(kind: str, about: Mapping[str, Any]) -> Row:
    to_block = about.get("to_block", LAST_BLOCK)
    defaults = {
        "kind": kind,
        "chain_id": 31337,
        "genesis_hash": "0x" + GENESIS.hex(),
        "contracts": {
            "GroupMessages": "0x" + GROUP_MESSAGES.hex(),
            "IdentityUpdates": "0x" + IDENTITY_UPDATES.hex(),
            "NodeRegistry": "0x" + NODE_REGISTRY.hex(),
        },
        "from_block": FIRST_BLOCK,
        "to_block": to_block,
        "to_block_hash": "0x" + hash_of(to_block).hex(),
    }
    return defaults | about


def rewrite_table(export: Path, file_name: str, table: pa.Table, **options: Any) -> None:
    """Write another table under the same name, and its digest into the manifest."""
    pq.write_table(table, export / file_name, **options)
    renew_digest(export, file_name)


def renew_digest(export: Path, file_name: str) -> None:
    """Write a changed file's digest into the manifest, as an exporter could.

    A node's rows are not counted again: its manifest need not be right.
    """
    manifest = json.loads((export / "manifest.json").read_text())
    digest = hashlib.sha256((export / file_name).read_bytes()).hexdigest()
    manifest["files"][file_name]["sha256"] = digest
    if manifest["kind"] == "chain":
        manifest["files"][file_name]["rows"] = pq.read_metadata(export / file_name).num_rows
    (export / "manifest.json").write_text(json.dumps(manifest))


Serve = Callable[[Sequence[Post], SigningKey], list[bytes]]


def write_scene(
    root: Path,
    serves: Mapping[int, Serve],
    posts: Sequence[Post] | None = None,
    *,
    is_table_right: bool = False,
) -> tuple[Path, list[tuple[int | None, Path]]]:
    """Write a chain and one export per node id; ``serves`` has each node's served part of it."""
    posts = base_posts() if posts is None else posts
    registry = [registered(node_id, log_index=n) for n, node_id in enumerate(serves)]
    chain = write_chain(root / "chain", posts, registry)
    nodes: list[tuple[int | None, Path]] = [
        (None, write_node(path, serve(posts, key), key, is_table_right=is_table_right))
        for node_id, serve in serves.items()
        for path, key in [(root / f"node-{node_id}", key_of(node_id))]
    ]
    return chain, nodes
