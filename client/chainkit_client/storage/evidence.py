"""Evidence: rules that nodes broke, and the envelopes of topics as they were signed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.sqlite import insert

from chainkit.misbehavior.types import Misbehavior
from chainkit.signatures import keccak256
from chainkit.types import Place
from chainkit_client.breach import Breach
from chainkit_client.reading.verified import VerifiedEnvelope
from chainkit_client.storage import schema

_BREACHES: Final = schema.breaches
_ENVELOPES: Final = schema.kept_envelopes


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
