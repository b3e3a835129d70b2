"""Spending by client and day of UTC, kept in the journal as running totals, to the wei.

Each change of a nonce's transactions changes the totals within the same transaction of the file, so
that nobody adds a day up again. Wei are text: a day's sum may exceed SQLite's integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Column, Connection, Integer, String, Table, select
from sqlalchemy.dialects.sqlite import insert

from chainkit_gateway.journal_tables import IN_ORDER, metadata, publications, sent_of, transactions
from chainkit_gateway.types import Sent

_COUNTS: Final = ("published", "reverted", "waiting")
_WEI: Final = ("paid", "reserved")

daily_sums: Final = Table(
    "daily_sums",
    metadata,
    Column("day", String, primary_key=True),
    Column("client", String, primary_key=True),
    *(Column(name, Integer, nullable=False) for name in _COUNTS),
    *(Column(name, String, nullable=False) for name in _WEI),
)


@dataclass(frozen=True, slots=True)
class Spending:
    """A client's transactions of a day, each counted on the day when it was first sent."""

    day: date
    client: str
    published: int = 0
    """Transactions that were mined and succeeded."""
    reverted: int = 0
    """Transactions that were mined and reverted: a revert costs as well."""
    waiting: int = 0
    """Transactions without a receipt so far."""
    paid: int = 0
    """Wei: the sum of gas used × effective gas price, as the receipts have them."""
    reserved: int = 0
    """Wei: the most that the waiting transactions may cost."""

    def plus(self, other: Spending, times: int = 1) -> Spending:
        """Return the sum of two Spendings of one day and client; -1 times subtracts the other."""
        sums = {
            name: getattr(self, name) + times * getattr(other, name) for name in (*_COUNTS, *_WEI)
        }
        return replace(self, **sums)


def sum_spending(rows: Iterable[tuple[str, Sent]]) -> list[Spending]:
    """Return what clients spent, by day and client, from transactions in nonce order.

    The transactions of one nonce replace each other and count once: the mined one, else the
    dearest.
    """
    sums: dict[tuple[date, str], Spending] = {}
    for _, group in groupby(rows, key=lambda row: row[1].nonce):
        one = _of_nonce(list(group))
        key = (one.day, one.client)
        sums[key] = sums.get(key, Spending(*key)).plus(one)
    return [sums[key] for key in sorted(sums)]


def _of_nonce(rows: Sequence[tuple[str, Sent]]) -> Spending:
    client, first = rows[0]
    day = day_of(first.sent_ns)
    settled = [sent.settlement for _, sent in rows if sent.settlement is not None]
    if not settled:
        return Spending(day, client, waiting=1, reserved=max(sent.most_cost for _, sent in rows))
    paid = settled[-1]
    succeeded = paid.succeeded
    return Spending(day, client, int(succeeded), int(not succeeded), paid=paid.cost)


def day_of(time_ns: int) -> date:
    """Return the day of UTC of a time in nanoseconds since 1970."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).date()


@contextmanager
def changing(connection: Connection, nonces: Iterable[int]) -> Iterator[None]:
    """Keep the totals right while the transactions of some nonces are changed."""
    wanted = set(nonces)
    before = sum_spending(_rows(connection, wanted))
    yield
    for each in before:
        _add(connection, each, -1)
    for each in sum_spending(_rows(connection, wanted)):
        _add(connection, each, 1)


def add_up(connection: Connection) -> None:
    """Fill the empty table from all transactions."""
    for each in sum_spending(_rows(connection, None)):
        _add(connection, each, 1)


def read_sums(
    connection: Connection, day: date | None = None, client: str | None = None
) -> list[Spending]:
    """Return the totals by day and client, of one day or one client where these are given."""
    wanted = select(daily_sums).order_by(daily_sums.c.day, daily_sums.c.client)
    if day is not None:
        wanted = wanted.where(daily_sums.c.day == day.isoformat())
    if client is not None:
        wanted = wanted.where(daily_sums.c.client == client)
    found = [_read(row) for row in connection.execute(wanted).mappings()]
    return [each for each in found if each.published or each.reverted or each.waiting]


def _rows(connection: Connection, nonces: set[int] | None) -> Iterator[tuple[str, Sent]]:
    joined = transactions.join(publications)
    wanted = select(publications.c.client, transactions).select_from(joined)
    if nonces is not None:
        wanted = wanted.where(transactions.c.nonce.in_(nonces))
    for row in connection.execute(wanted.order_by(*IN_ORDER)).mappings():
        yield row["client"], sent_of(row)


def _add(connection: Connection, one: Spending, times: int) -> None:
    known = _row(connection, one.day, one.client)
    total = (known or Spending(one.day, one.client)).plus(one, times)
    values = {name: getattr(total, name) for name in _COUNTS}
    values |= {name: str(getattr(total, name)) for name in _WEI}
    row = insert(daily_sums).values(day=one.day.isoformat(), client=one.client, **values)
    connection.execute(row.on_conflict_do_update(index_elements=["day", "client"], set_=values))


def _row(connection: Connection, day: date, client: str) -> Spending | None:
    is_it = (daily_sums.c.day == day.isoformat()) & (daily_sums.c.client == client)
    row = connection.execute(select(daily_sums).where(is_it)).mappings().one_or_none()
    return None if row is None else _read(row)


def _read(row: Any) -> Spending:
    counts = dict(zip(_COUNTS, itemgetter(*_COUNTS)(row), strict=True))
    wei = {name: int(row[name]) for name in _WEI}
    return Spending(date.fromisoformat(row["day"]), row["client"], **counts, **wei)
