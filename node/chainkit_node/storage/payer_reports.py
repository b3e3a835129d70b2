"""The payer reports of every originator, and which nodes have signed them (ADR 56).

The reports of one originator are consecutive: the first begins with sequence id 1, and each other
one behind the one before. So no envelope is in two reports, or between two. Reports stay for ever.
All functions see the one state of the transaction that is handed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, Connection, Select, bindparam, func, insert, select, update

from chainkit.errors import StoreError
from chainkit.protocol.proto import node_api_pb2
from chainkit_node.storage import schema

MOST_REFUSED: Final = 100
"""Refused reports that are kept of one originator: the first ones show enough."""

_REPORTS: Final = schema.payer_reports
_ATTESTATIONS: Final = schema.payer_report_attestations
_REFUSED: Final = schema.refused_payer_reports

# Built once: building takes longer than their execution.
_OF_NODE: Final = _REPORTS.c.originator_id == bindparam("node", type_=BigInteger())
_REPORTED: Final = select(func.coalesce(func.max(_REPORTS.c.last_id), 0)).where(_OF_NODE)
_WAITING: Final = select(func.min(_REPORTS.c.first_id) - 1).where(
    _OF_NODE, _REPORTS.c.attested_ns.is_(None)
)
_ATTESTED: Final = select(func.coalesce(_WAITING.scalar_subquery(), _REPORTED.scalar_subquery(), 0))


class StoredPayerReport(NamedTuple):
    """A row of ``payer_reports``; fields are its columns."""

    originator_id: int
    first_id: int
    last_id: int
    """Both ends of the range are included."""
    report: bytes
    """A serialized PayerReport."""
    signature: bytes
    """65 bytes, of the originator."""
    payers: bytes
    """The serialized PayerCharges under the report's root."""
    stored_ns: int
    """Nanoseconds since 1970, by this node's clock."""
    attested_ns: int | None
    """When enough nodes had signed it; None before."""


class RefusedReport(NamedTuple):
    """A row of ``refused_payer_reports``; fields are its columns."""

    originator_id: int
    digest: bytes
    """The 32 bytes that the originator signed."""
    first_id: int
    last_id: int
    reason: str
    report: bytes
    """The serialized SignedPayerReport."""
    refused_ns: int
    """Nanoseconds since 1970, by this node's clock."""


def attested_through(connection: Connection, originator_node_id: int) -> int:
    """Return the last sequence id of an originator that attested reports cover, from 1 on.

    0 where there is none: a report that is attested before an earlier one covers nothing yet.
    """
    return int(connection.execute(_ATTESTED, {"node": originator_node_id}).scalar_one())


def reported_through(connection: Connection, originator_node_id: int) -> int:
    """Return the last sequence id of an originator that any stored report covers; 0 for none."""
    return int(connection.execute(_REPORTED, {"node": originator_node_id}).scalar_one())


def insert_report(connection: Connection, report: StoredPayerReport) -> None:
    """Insert the report that follows an originator's last one.

    Raises StoreError where its range overlaps a stored one, or leaves ids out.
    """
    expected = reported_through(connection, report.originator_id) + 1
    if report.first_id != expected or report.last_id < report.first_id:
        subject = f"payer report of node {report.originator_id}"
        got = f"{report.first_id} to {report.last_id}"
        raise StoreError(subject, f"a range that begins with id {expected}", got)
    connection.execute(insert(_REPORTS).values(report._asdict()))


def insert_attestation(
    connection: Connection, originator_id: int, first_id: int, node_id: int, signature: bytes
) -> None:
    """Store that a node signed a stored report, unless that is stored already."""
    if node_id not in read_attestations(connection, originator_id, first_id):
        key = {"originator_id": originator_id, "first_id": first_id, "node_id": node_id}
        connection.execute(insert(_ATTESTATIONS).values(**key, signature=signature))


def read_attestations(
    connection: Connection, originator_id: int, first_id: int
) -> dict[int, bytes]:
    """Return the signatures of a report's attesters, by node id, in the order of the ids."""
    query = (
        select(_ATTESTATIONS.c.node_id, _ATTESTATIONS.c.signature)
        .where(_ATTESTATIONS.c.originator_id == originator_id)
        .where(_ATTESTATIONS.c.first_id == first_id)
        .order_by(_ATTESTATIONS.c.node_id)
    )
    return {int(node_id): bytes(signature) for node_id, signature in connection.execute(query)}


def mark_attested(connection: Connection, originator_id: int, first_id: int, now_ns: int) -> None:
    """Record that enough nodes have signed a report; it stays so."""
    is_it = _REPORTS.c.originator_id == originator_id, _REPORTS.c.first_id == first_id
    waits = _REPORTS.c.attested_ns.is_(None)
    connection.execute(update(_REPORTS).where(*is_it, waits).values(attested_ns=now_ns))


def read_report_at(
    connection: Connection, originator_id: int, sequence_id: int
) -> StoredPayerReport | None:
    """Return the report that covers a sequence id, or None."""
    query = _of_originator(originator_id).where(
        _REPORTS.c.first_id <= sequence_id, _REPORTS.c.last_id >= sequence_id
    )
    row = connection.execute(query).first()
    return None if row is None else StoredPayerReport._make(row)


def read_reports_behind(
    connection: Connection, originator_id: int, after_id: int, limit: int
) -> Sequence[StoredPayerReport]:
    """Return up to ``limit`` reports of an originator that end behind an id, in their order."""
    query = _of_originator(originator_id).where(_REPORTS.c.last_id > after_id).limit(limit)
    return [StoredPayerReport._make(row) for row in connection.execute(query)]


def read_reporters(connection: Connection) -> Sequence[int]:
    """Return the originators that have stored reports, in the order of their ids."""
    column = _REPORTS.c.originator_id
    return [int(each) for each in connection.scalars(select(column).distinct().order_by(column))]


def insert_refused(connection: Connection, refused: RefusedReport) -> bool:
    """Keep a refused report as evidence; return False where it is known, or enough are kept."""
    of_node = _REFUSED.c.originator_id == refused.originator_id
    count = connection.scalar(select(func.count()).where(of_node)) or 0
    known = select(_REFUSED.c.first_id).where(of_node, _REFUSED.c.digest == refused.digest)
    if count >= MOST_REFUSED or connection.execute(known).first() is not None:
        return False
    connection.execute(insert(_REFUSED).values(refused._asdict()))
    return True


def read_refused_reports(connection: Connection) -> Sequence[RefusedReport]:
    """Return the refused reports that are kept, by originator and range."""
    order = _REFUSED.c.originator_id, _REFUSED.c.first_id, _REFUSED.c.digest
    return [
        RefusedReport._make(row) for row in connection.execute(select(_REFUSED).order_by(*order))
    ]


def as_message(connection: Connection, row: StoredPayerReport) -> node_api_pb2.SignedPayerReport:
    """Return a stored report with all signatures that are stored, as the stored bytes have it."""
    message = node_api_pb2.SignedPayerReport(
        unsigned_payer_report=row.report, originator_signature=row.signature
    )
    message.payers.ParseFromString(row.payers)
    for node_id, signature in read_attestations(
        connection, row.originator_id, row.first_id
    ).items():
        message.attestations.add(node_id=node_id, signature=signature)
    return message


def _of_originator(originator_id: int) -> Select[Any]:
    of_node = _REPORTS.c.originator_id == originator_id
    return select(_REPORTS).where(of_node).order_by(_REPORTS.c.first_id)
