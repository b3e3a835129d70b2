"""The debts of payers for each stored envelope of a node, and their sums over a range.

All functions see the one state of the transaction that is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, func, select

from chainkit.protocol.charges import Charge
from chainkit.protocol.payer_reports import (
    MOST_IDS,
    MOST_MISSING,
    MOST_PAYERS,
    PayerReport,
    PayerTotal,
)
from chainkit_indexer.storage.store import Store
from chainkit_node.storage import schema

_CHARGES: Final = schema.charges
_COLUMNS: Final = tuple(_CHARGES.c.keys())
_TOTALS: Final = (
    func.count(),
    func.sum(_CHARGES.c.bytes),
    func.sum(cast(_CHARGES.c.bytes, BigInteger) * _CHARGES.c.days),
)


def insert_charges(
    store: Store,
    connection: Connection,
    originator_id: int,
    charges: Iterable[tuple[int, Charge]],
) -> None:
    """Store what the payers of an originator's new envelopes owe, by sequence ids."""
    rows = [(originator_id, sequence_id, *charge) for sequence_id, charge in charges]
    store.insert_rows(connection, _CHARGES, _COLUMNS, rows)


def compute_report(
    connection: Connection, originator_id: int, first_id: int, last_id: int
) -> PayerReport:
    """Return the report of a range, both ends included, by the envelopes of this node."""
    within = _within(originator_id, first_id, last_id)
    query = select(_CHARGES.c.payer, *_TOTALS).where(*within).group_by(_CHARGES.c.payer)
    # Databases sum in numbers of their own.
    rows = [
        PayerTotal(bytes(payer), int(messages), int(size), int(byte_days))
        for payer, messages, size, byte_days in connection.execute(query)
    ]
    held = sum(each.messages for each in rows)
    is_complete = held == last_id - first_id + 1
    missing = () if is_complete else _missing(connection, originator_id, first_id, last_id)
    nobody = sum(each.messages for each in rows if not each.payer)
    totals = sorted(each for each in rows if each.payer)
    return PayerReport(originator_id, first_id, last_id, missing, nobody, totals)


def next_report(
    connection: Connection, originator_id: int, first_id: int, last_id: int
) -> PayerReport:
    """Return the report of a range that ends at ``last_id``, or earlier where it were too large.

    A single id gives a report of any originator.
    """
    last_id = min(last_id, first_id + MOST_IDS - 1)
    while True:
        report = compute_report(connection, originator_id, first_id, last_id)
        if len(report.totals) <= MOST_PAYERS and len(report.missing) <= MOST_MISSING:
            return report
        last_id = first_id + (last_id - first_id) // 2


def _missing(
    connection: Connection, originator_id: int, first_id: int, last_id: int
) -> Sequence[range]:
    ids = _CHARGES.c.sequence_id
    following = func.lead(ids, 1, last_id + 1).over(order_by=ids)
    pairs = select(ids.label("held"), following.label("following"))
    edges = pairs.where(*_within(originator_id, first_id, last_id)).subquery()
    query = select(edges).where(edges.c.following > edges.c.held + 1).order_by(edges.c.held)
    runs = [range(held + 1, following) for held, following in connection.execute(query)]
    first = select(func.min(ids)).where(*_within(originator_id, first_id, last_id))
    begin = connection.scalar(first) or last_id + 1
    return [range(first_id, begin), *runs] if begin > first_id else runs


def _within(originator_id: int, first_id: int, last_id: int) -> tuple[ColumnElement[bool], ...]:
    is_of = _CHARGES.c.originator_id == originator_id
    return is_of, _CHARGES.c.sequence_id.between(first_id, last_id)
