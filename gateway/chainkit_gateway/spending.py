"""The most that a client may spend on a day of UTC, to the wei."""

from __future__ import annotations

from collections.abc import Callable

from chainkit.service.refusals import Overloaded
from chainkit.text.ether import ether_words
from chainkit_gateway.daily_sums import day_of
from chainkit_gateway.journal import Journal
from chainkit_gateway.types import Publication


def spent_today(journal: Journal, now_ns: int, client: str | None = None) -> int:
    """Return the wei that a client, or all clients, spent and may still pay since midnight UTC."""
    return sum(each.paid + each.reserved for each in journal.spending(day_of(now_ns), client))


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
