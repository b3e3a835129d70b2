"""Payer reports that a person should look at: refused ones, and own ones that nobody attests.

All functions see the one state of the transaction that is handed in.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.storage import schema

REFUSED_NS: Final = 7 * 24 * 60 * 60 * NANOSECONDS_PER_SECOND
"""How long a refused report is shown; its evidence stays."""

_REFUSED: Final = schema.refused_payer_reports.c
_REPORTS: Final = schema.payer_reports.c


class Refusals(NamedTuple):
    """The reports of one node that this node refused lately."""

    originator_id: int
    reports: int
    first_id: int
    """The newest one's range, both ends included."""
    last_id: int
    reason: str
    """Why the newest one was refused."""


class Unattested(NamedTuple):
    """The oldest report of a node that too few nodes have signed; fields are columns."""

    first_id: int
    last_id: int
    stored_ns: int
    """Nanoseconds since 1970, by this node's clock."""


def read_refusals(connection: Connection, now_ns: int) -> list[Refusals]:
    """Return the refusals of the last REFUSED_NS, by originator."""
    newest = func.row_number().over(
        partition_by=_REFUSED.originator_id, order_by=_REFUSED.refused_ns.desc()
    )
    columns = _REFUSED.originator_id, _REFUSED.first_id, _REFUSED.last_id, _REFUSED.reason
    placed = (
        select(
            *columns,
            func.count().over(partition_by=_REFUSED.originator_id).label("reports"),
            newest.label("place"),
        )
        .where(_REFUSED.refused_ns > now_ns - REFUSED_NS)
        .subquery()
    )
    found = placed.c
    query = (
        select(found.originator_id, found.reports, found.first_id, found.last_id, found.reason)
        .where(found.place == 1)
        .order_by(found.originator_id)
    )
    return [Refusals._make(row) for row in connection.execute(query)]


def read_unattested(connection: Connection, originator_id: int) -> Unattested | None:
    """Return the oldest report of a node that is not attested, or None."""
    query = (
        select(_REPORTS.first_id, _REPORTS.last_id, _REPORTS.stored_ns)
        .where(_REPORTS.originator_id == originator_id, _REPORTS.attested_ns.is_(None))
        .order_by(_REPORTS.first_id)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else Unattested._make(row)
