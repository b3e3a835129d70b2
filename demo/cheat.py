"""The faults that an operator puts in its own database: changes, omissions, inventions.

The operator holds the node's key and signs the changed data. Without that, the signature alone
would show the fault. Payloads of the chain are compared with the chain; the node's own envelopes
with what other nodes have replicated, and with the rules of the protocol.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.protocol.envelope import parse_originator_envelope, sign_originator_envelope
from chainkit.protocol.originated_envelope import (
    OriginatedEnvelope,
    sign_originated,
    unsigned_originated,
)
from chainkit.protocol.payer_envelope import sign_payer_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256
from localnet.network import welcome

_HOUR_NS: Final = 3600 * 10**9

_THE_ROW: Final = "originator_id = 0 AND sequence_id = ?"
"""Other originators than the chain's have rows in the table, too."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One change of the database, and the finding that must follow."""

    code: str
    sequence_id: int


@dataclass(frozen=True, slots=True)
class LiveLie:
    """One change of the node's own log, and the report that must follow."""

    misbehavior: str
    """The type's name, as in XIP-49 §3.2.7."""
    sequence_id: int


def lie(database: Path, node_id: int, key: SigningKey) -> list[LiveLie]:
    """Replace the node's last envelope, and add three that no honest node signs."""
    payer = SigningKey(keccak256(b"a payer of the cheat"))
    with closing(sqlite3.connect(database)) as connection, connection:
        (last,) = connection.execute(
            "SELECT max(sequence_id) FROM envelopes WHERE originator_id = ?", (node_id,)
        ).fetchone()
        now = time.time_ns()

        def signed(sequence_id: int, target: int, seen: int = 0, ahead: int = 0) -> bytes:
            client = welcome(sequence_id.to_bytes(32, "big"), {node_id: seen} if seen else {})
            paid = sign_payer_envelope(client, target, payer)
            stated = OriginatedEnvelope(node_id, sequence_id, now + ahead, paid)
            return sign_originated(unsigned_originated(stated), key)

        connection.execute(
            "UPDATE envelopes SET envelope = ?, originator_ns = ?"
            " WHERE originator_id = ? AND sequence_id = ?",
            (signed(last, node_id), now, node_id, last),
        )
        added = {
            last + 1: signed(last + 1, target=node_id + 1),
            last + 2: signed(last + 2, node_id, seen=last + 2),
            last + 3: signed(last + 3, node_id, ahead=_HOUR_NS),
        }
        connection.executemany(
            "INSERT INTO envelopes (originator_id, sequence_id, originator_ns, topic, envelope)"
            " VALUES (?, ?, ?, ?, ?)",
            [(node_id, each, now, b"\1" + bytes(32), row) for each, row in added.items()],
        )
    return [
        LiveLie("DUPLICATE_SEQUENCE_ID", last),
        LiveLie("INVALID_PAYLOAD", last + 1),
        LiveLie("CAUSAL_ORDERING", last + 2),
        LiveLie("OUT_OF_ORDER", last + 3),
    ]


def tamper(database: Path, key: SigningKey) -> list[Injected]:
    """Change one envelope, remove another, and add one that the chain never had."""
    with closing(sqlite3.connect(database)) as connection, connection:
        sequence_ids = [
            row[0]
            for row in connection.execute(
                "SELECT sequence_id FROM envelope_logs ORDER BY sequence_id"
            )
        ]
        changed = sequence_ids[len(sequence_ids) // 3]
        omitted = sequence_ids[2 * len(sequence_ids) // 3]
        invented = _next_sequence_id(connection)
        _change(connection, changed, key)
        for table in ("envelopes", "envelope_logs"):
            connection.execute(f"DELETE FROM {table} WHERE {_THE_ROW}", (omitted,))
        _invent(connection, sequence_ids[-1], invented, key)
    return [
        Injected("ENVELOPE_ALTERED", changed),
        Injected("ENVELOPE_MISSING", omitted),
        Injected("ENVELOPE_INVENTED", invented),
    ]


def _next_sequence_id(connection: sqlite3.Connection) -> int:
    (highest,) = connection.execute(
        "SELECT max(sequence_id) FROM"
        " (SELECT sequence_id FROM envelope_logs UNION ALL SELECT sequence_id FROM quarantine)"
    ).fetchone()
    return int(highest) + 1


def _change(connection: sqlite3.Connection, sequence_id: int, key: SigningKey) -> None:
    """Change the last byte of a message, and sign it for the same transaction."""
    served = parse_originator_envelope(_envelope(connection, sequence_id))
    unsigned = _unsigned(served.unsigned_originator_envelope)
    client_envelope = bytearray(served.client_envelope)
    client_envelope[-1] ^= 0xFF
    payer = envelopes_pb2.PayerEnvelope(unsigned_client_envelope=bytes(client_envelope))
    unsigned.payer_envelope = payer.SerializeToString()
    forged = sign_originator_envelope(unsigned.SerializeToString(), served.transaction_hash, key)
    connection.execute(f"UPDATE envelopes SET envelope = ? WHERE {_THE_ROW}", (forged, sequence_id))


def _invent(connection: sqlite3.Connection, model: int, sequence_id: int, key: SigningKey) -> None:
    """Serve a message under a sequence id and a transaction that the chain does not have."""
    served = parse_originator_envelope(_envelope(connection, model))
    unsigned = _unsigned(served.unsigned_originator_envelope)
    unsigned.originator_sequence_id = sequence_id
    transaction_hash = keccak256(b"a transaction that never was")
    forged = sign_originator_envelope(unsigned.SerializeToString(), transaction_hash, key)
    new = {"sequence_id": sequence_id, "transaction_hash": transaction_hash, "envelope": forged}
    for table in ("envelopes", "envelope_logs"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        chosen = ", ".join(f":{name}" if name in new else name for name in columns)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)})"
            f" SELECT {chosen} FROM {table} WHERE originator_id = 0 AND sequence_id = :model",
            new | {"model": model},
        )


def _envelope(connection: sqlite3.Connection, sequence_id: int) -> bytes:
    (envelope,) = connection.execute(
        f"SELECT envelope FROM envelopes WHERE {_THE_ROW}", (sequence_id,)
    ).fetchone()
    return bytes(envelope)


def _unsigned(data: bytes) -> envelopes_pb2.UnsignedOriginatorEnvelope:
    return envelopes_pb2.UnsignedOriginatorEnvelope.FromString(data)
