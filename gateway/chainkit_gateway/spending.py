"""The cost of what was published, exact: wei by client and day of UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Final

from chainkit.service.refusals import Overloaded
from chainkit.text.ether import ether_words
from chainkit_gateway.journal import Journal
from chainkit_gateway.types import Publication, Sent

_DAY_NS: Final = 86_400 * 10**9


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

    def plus(self, other: Spending) -> Spending:
        """Return the sum of two Spendings of one day and client."""
        return Spending(
            self.day,
            self.client,
            self.published + other.published,
            self.reverted + other.reverted,
            self.waiting + other.waiting,
            self.paid + other.paid,
            self.reserved + other.reserved,
        )


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


def _of_nonce(rows: list[tuple[str, Sent]]) -> Spending:
    client, first = rows[0]
    day = datetime.fromtimestamp(first.sent_ns // 10**9, UTC).date()
    settled = [sent.settlement for _, sent in rows if sent.settlement is not None]
    if not settled:
        return Spending(day, client, waiting=1, reserved=max(sent.most_cost for _, sent in rows))
    paid = settled[-1]
    succeeded = paid.succeeded
    return Spending(day, client, int(succeeded), int(not succeeded), paid=paid.cost)


def spent_today(journal: Journal, now_ns: int, client: str | None = None) -> int:
    """Return the wei that a client, or all clients, spent and may still pay since midnight UTC."""
    rows = journal.sent_by_clients(now_ns - now_ns % _DAY_NS, client)
    return sum(each.paid + each.reserved for each in sum_spending(rows))


class SpendingLimit:
    """A client's limit for a day; a waiting transaction counts with the most that it may cost."""

    def __init__(self, journal: Journal, most: int, now_ns: Callable[[], int]) -> None:
        """Take the journal of transactions, the limit in wei, and a clock."""
        self._journal = journal
        self._most = most
        self._now_ns = now_ns

    def __call__(self, publication: Publication, wei: int) -> None:
        """Let a publication's client spend so many wei more today. Raises Overloaded."""
        spent = spent_today(self._journal, self._now_ns(), publication.client)
        if spent + wei > self._most:
            subject = f"spending of {publication.client} today"
            got = f"{ether_words(spent)} and {ether_words(wei)} more"
            expected, again = f"at most {ether_words(self._most)}", "again after midnight of UTC"
            raise Overloaded(subject, expected, got, again)
