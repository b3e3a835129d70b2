"""A node's database as version 0.1.0 left it, with rows in every table."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, text

from chainkit_indexer.storage.database import Database

_PLACE: Final = """
    originator_id INTEGER NOT NULL, sequence_id BIGINT NOT NULL, block_number BIGINT NOT NULL,
    block_hash BLOB NOT NULL, transaction_hash BLOB NOT NULL, transaction_index INTEGER NOT NULL,
    log_index INTEGER NOT NULL"""

TABLES: Final = (
    """CREATE TABLE identity (
    id INTEGER NOT NULL CHECK (id = 1), schema_version INTEGER NOT NULL, chain_id BIGINT NOT NULL,
    genesis_hash BLOB NOT NULL, node_public_key BLOB NOT NULL, group_messages BLOB NOT NULL,
    identity_updates BLOB NOT NULL, first_block BIGINT NOT NULL, PRIMARY KEY (id))""",
    """CREATE TABLE blocks (
    number BIGINT NOT NULL, hash BLOB NOT NULL, parent_hash BLOB NOT NULL,
    timestamp BIGINT NOT NULL, last_sequence_id BIGINT NOT NULL, PRIMARY KEY (number))""",
    """CREATE TABLE cursor (
    id INTEGER NOT NULL CHECK (id = 1), block_number BIGINT NOT NULL, block_hash BLOB NOT NULL,
    last_sequence_id BIGINT NOT NULL, PRIMARY KEY (id),
    FOREIGN KEY(block_number) REFERENCES blocks (number))""",
    f"""CREATE TABLE envelopes ({_PLACE}, originator_ns BIGINT NOT NULL, topic BLOB NOT NULL,
    envelope BLOB NOT NULL, payload_digest BLOB NOT NULL,
    PRIMARY KEY (originator_id, sequence_id))""",
    "CREATE INDEX envelopes_by_block ON envelopes (block_number)",
    f"""CREATE TABLE quarantine ({_PLACE}, contract BLOB NOT NULL, identifier BLOB NOT NULL,
    payload BLOB NOT NULL, reason TEXT NOT NULL, payload_digest BLOB NOT NULL,
    PRIMARY KEY (originator_id, sequence_id))""",
    "CREATE INDEX quarantine_by_block ON quarantine (block_number)",
    """CREATE TABLE reorgs (
    id INTEGER NOT NULL, ancestor_number BIGINT NOT NULL, ancestor_hash BLOB NOT NULL,
    old_head_number BIGINT NOT NULL, old_head_hash BLOB NOT NULL, depth INTEGER NOT NULL,
    PRIMARY KEY (id))""",
    f"""CREATE TABLE journal (reorg_id INTEGER NOT NULL, {_PLACE}, envelope BLOB,
    payload_digest BLOB NOT NULL, outcome TEXT NOT NULL, new_sequence_id BIGINT,
    PRIMARY KEY (reorg_id, originator_id, sequence_id),
    FOREIGN KEY(reorg_id) REFERENCES reorgs (id))""",
    "CREATE INDEX journal_by_transaction ON journal (transaction_hash)",
)

GENESIS: Final = b"\x10" * 32
PUBLIC_KEY: Final = b"\x04" + b"\x20" * 64
GROUP_MESSAGES: Final = b"\x30" * 20
IDENTITY_UPDATES: Final = b"\x40" * 20
FIRST_BLOCK: Final = 3
LAST_BLOCK: Final = 42
LAST_SEQUENCE_ID: Final = (LAST_BLOCK - FIRST_BLOCK + 1) * 2


def make(database: Database, with_rows: bool = True) -> None:
    """Make the tables, without ``alembic_version``, and two payloads in each block."""
    database.prepare()
    with database.writing() as connection:
        binary = "BYTEA" if connection.dialect.name == "postgresql" else "BLOB"
        for statement in TABLES:
            connection.execute(text(statement.replace("BLOB", binary)))
        if with_rows:
            for table, rows in content().items():
                _insert(connection, table, rows)


def content() -> dict[str, list[dict[str, Any]]]:
    """Rows by table, in the order in which they may refer to each other."""
    blocks = [
        {
            "number": number,
            "hash": block_hash(number),
            "parent_hash": block_hash(number - 1),
            "timestamp": 1_700_000_000 + number,
            "last_sequence_id": max(number - FIRST_BLOCK + 1, 0) * 2,
        }
        for number in range(FIRST_BLOCK - 1, LAST_BLOCK + 1)
    ]
    sequence_ids = range(1, LAST_SEQUENCE_ID + 1)
    envelopes = [
        {
            **place(sequence_id),
            "originator_ns": 10**9 * (1_700_000_000 + sequence_id),
            "topic": b"\x00" + b"\x50" * 32,
            "envelope": bytes([sequence_id]) * 700,
            "payload_digest": b"\x60" * 32,
        }
        for sequence_id in sequence_ids
        if sequence_id % 7
    ]
    quarantine = [
        {
            **place(sequence_id),
            "contract": GROUP_MESSAGES,
            "identifier": b"\x50" * 32,
            "payload": b"\x00poison",
            "reason": "expected a payload, got “poison”",
            "payload_digest": b"\x60" * 32,
        }
        for sequence_id in sequence_ids
        if not sequence_id % 7
    ]
    return {
        "identity": [
            {
                "id": 1,
                "schema_version": 1,
                "chain_id": 31337,
                "genesis_hash": GENESIS,
                "node_public_key": PUBLIC_KEY,
                "group_messages": GROUP_MESSAGES,
                "identity_updates": IDENTITY_UPDATES,
                "first_block": FIRST_BLOCK,
            }
        ],
        "blocks": blocks,
        "cursor": [
            {
                "id": 1,
                "block_number": LAST_BLOCK,
                "block_hash": block_hash(LAST_BLOCK),
                "last_sequence_id": LAST_SEQUENCE_ID,
            }
        ],
        "envelopes": envelopes,
        "quarantine": quarantine,
        "reorgs": [
            {
                "id": 1,
                "ancestor_number": 40,
                "ancestor_hash": block_hash(40),
                "old_head_number": 41,
                "old_head_hash": b"\x70" * 32,
                "depth": 1,
            }
        ],
        "journal": [
            {
                "reorg_id": 1,
                **place(LAST_SEQUENCE_ID - 1 + number),
                "envelope": envelope,
                "payload_digest": b"\x60" * 32,
                "outcome": "moved",
                "new_sequence_id": LAST_SEQUENCE_ID - 2,
            }
            for number, envelope in enumerate((b"\x80" * 700, None))
        ],
    }


def place(sequence_id: int) -> dict[str, Any]:
    """Where a payload stands."""
    number = FIRST_BLOCK + (sequence_id - 1) // 2
    return {
        "originator_id": 0,
        "sequence_id": sequence_id,
        "block_number": number,
        "block_hash": block_hash(number),
        "transaction_hash": bytes([sequence_id]) * 32,
        "transaction_index": (sequence_id - 1) % 2,
        "log_index": (sequence_id - 1) % 2,
    }


def block_hash(number: int) -> bytes:
    """Hash of the block at a height."""
    return bytes([number]) * 32


def _insert(connection: Connection, table: str, rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    places = ", ".join(f":{name}" for name in names)
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"
    connection.execute(text(statement), rows)
