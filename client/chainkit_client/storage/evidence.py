"""Evidence: rules that nodes broke, and envelopes as they were signed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import keccak256
from chainkit.types import Place
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage import schema

_BREACHES: Final = schema.breaches
_ENVELOPES: Final = schema.kept_envelopes
_PROMISED: Final = schema.promised_envelopes
_UNKNOWN: Final = schema.unknown_payloads

OWN_ROWS: Final = select(schema.group_messages, _ENVELOPES.c.envelope).outerjoin(
    _ENVELOPES,
    (_ENVELOPES.c.originator_id == schema.group_messages.c.originator_id)
    & (_ENVELOPES.c.sequence_id == schema.group_messages.c.sequence_id),
)
"""The messages that this installation read, each with its envelope, null where none is kept."""

MOST_UNKNOWN: Final = 100
"""Payloads of one node that are kept though the chain does not have them."""


@dataclass(frozen=True, slots=True)
class KeptBreach:
    """A broken rule that is stored."""

    id: bytes
    """32 bytes: the same for the same evidence."""
    node_id: int
    misbehavior: Misbehavior | None
    reason: str
    report: bytes | None
    """An UnsignedMisbehaviorReport with the time of the first sight; None without a report type."""
    seen_ns: int
    """Nanoseconds since 1970."""
    taken_by: int
    """How many nodes took the report."""


def keep_breaches(connection: Connection, breaches: Iterable[Breach], now_ns: int) -> None:
    """Store broken rules; a rule with stored evidence stays unchanged."""
    for each in breaches:
        # The same evidence gives the same id, whatever the time and the words are.
        timeless = each.report(0) or b"".join(each.envelopes) or each.reason.encode()
        row = {
            "id": keccak256(each.node_id.to_bytes(8, "big") + timeless),
            "node_id": each.node_id,
            "misbehavior": None if each.misbehavior is None else int(each.misbehavior),
            "reason": each.reason,
            "report": each.report(now_ns),
            "seen_ns": now_ns,
        }
        connection.execute(insert(_BREACHES).values(row).on_conflict_do_nothing())


def read_breaches(connection: Connection) -> list[KeptBreach]:
    """Return all broken rules, in the order in which they were seen."""
    found = connection.execute(select(_BREACHES).order_by(_BREACHES.c.seen_ns, _BREACHES.c.id))
    return [_breach(row) for row in found.mappings()]


def report_taken(connection: Connection, breach_id: bytes, count: int) -> None:
    """Store how many nodes took a report."""
    statement = update(_BREACHES).where(_BREACHES.c.id == breach_id)
    connection.execute(statement.values(taken_by=count))


def keep_envelopes(connection: Connection, envelopes: Iterable[VerifiedEnvelope]) -> None:
    """Store envelopes of topics; after a reorg, a new envelope of a place replaces the old one."""
    for each in envelopes:
        row = {
            "originator_id": each.originator_id,
            "sequence_id": each.sequence_id,
            "topic": each.topic,
            "envelope": each.envelope,
        }
        key = [_ENVELOPES.c.originator_id, _ENVELOPES.c.sequence_id]
        statement = insert(_ENVELOPES).values(row).on_conflict_do_update(key, set_=row)
        connection.execute(statement)


def read_topic(connection: Connection, topic: bytes) -> list[bytes]:
    """Return the stored OriginatorEnvelopes of a topic, by originator and sequence id."""
    columns = _ENVELOPES.c
    query = select(columns.envelope).where(columns.topic == topic)
    found = connection.scalars(query.order_by(columns.originator_id, columns.sequence_id))
    return list(found)


def read_envelope_at(connection: Connection, place: Place) -> bytes | None:
    """Return the OriginatorEnvelope of a place, None where none is stored."""
    columns = _ENVELOPES.c
    is_it = (columns.originator_id == place[0], columns.sequence_id == place[1])
    found: bytes | None = connection.execute(select(columns.envelope).where(*is_it)).scalar()
    return found


def keep_promise(connection: Connection, envelope: VerifiedEnvelope, now_ns: int) -> None:
    """Store the answer to a publish until its topic has the envelope."""
    row = {
        "originator_id": envelope.originator_id,
        "sequence_id": envelope.sequence_id,
        "envelope": envelope.envelope,
        "kept_ns": now_ns,
    }
    # The first answer of a place stays: a second one is its duplicate, or the same.
    connection.execute(insert(_PROMISED).values(row).on_conflict_do_nothing())


def read_promises(connection: Connection, after_ns: int) -> list[bytes]:
    """Return the answers to publishes since a time, and forget those before."""
    connection.execute(delete(_PROMISED).where(_PROMISED.c.kept_ns <= after_ns))
    found = connection.scalars(select(_PROMISED.c.envelope).order_by(_PROMISED.c.kept_ns))
    return list(found)


def forget_promises(connection: Connection, places: Iterable[Place]) -> None:
    """Forget answers to publishes that are settled."""
    for originator_id, sequence_id in places:
        is_it = (_PROMISED.c.originator_id == originator_id, _PROMISED.c.sequence_id == sequence_id)
        connection.execute(delete(_PROMISED).where(*is_it))


def keep_unknown(
    connection: Connection, node_id: int, envelopes: Iterable[bytes], now_ns: int
) -> None:
    """Store payloads that a node vouched for and the chain does not have, MOST_UNKNOWN of a node.

    A payload is counted once, however often the node serves the payload.
    """
    room = MOST_UNKNOWN - count_unknown(connection).get(node_id, 0)
    for each in list(dict.fromkeys(envelopes))[: max(room, 0)]:
        row = {"id": keccak256(each), "node_id": node_id, "envelope": each, "seen_ns": now_ns}
        connection.execute(insert(_UNKNOWN).values(row).on_conflict_do_nothing())


def count_unknown(connection: Connection) -> Mapping[int, int]:
    """Return how many payloads of each node the chain did not have, by node id."""
    node_id = _UNKNOWN.c.node_id
    query = select(node_id, func.count()).group_by(node_id).order_by(node_id)
    return {row[0]: row[1] for row in connection.execute(query)}


def _breach(row: Any) -> KeptBreach:
    number = row["misbehavior"]
    return KeptBreach(
        row["id"],
        row["node_id"],
        None if number is None else Misbehavior(number),
        row["reason"],
        row["report"],
        row["seen_ns"],
        row["taken_by"],
    )
