"""The faults that an operator puts in its own database: a change, an omission, an invention.

The cheat holds the node's key and signs what it changed. Anything less would be found by the
signature alone; this is found only by comparison with the chain.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chainkit.protocol.envelope import parse_originator_envelope, sign_originator_envelope
from chainkit.protocol.proto import envelopes_pb2
from chainkit.signatures import SigningKey, keccak256

_THE_ROW: Final = "originator_id = 0 AND sequence_id = ?"
"""Other originators than the chain's have rows in the table, too."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One thing that was done to the database, and the finding that must come of it."""

    code: str
    sequence_id: int


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
    """Turn the last byte of a message, and vouch for it under the same transaction."""
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
