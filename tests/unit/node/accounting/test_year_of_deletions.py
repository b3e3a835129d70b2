"""Two nodes publish for a year and delete what has expired; one of them deletes more than that.

A third node is away for some days again and again, and asks both for what it missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import delete

from chainkit.misbehavior.types import Misbehavior
from chainkit.protocol.charges import Charge
from chainkit.protocol.log_comparison import Comparison, Differences
from chainkit_indexer.storage.envelopes import StoredEnvelope, read_by_originators
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.accounting.books import Outcome
from chainkit_node.replicating.gap_keeper import GapKeeper
from chainkit_node.replicating.intake import Intake, Source
from chainkit_node.replicating.own_ids import UngivenIds
from chainkit_node.storage.charges import insert_charges
from chainkit_node.storage.learned_ids import LEARNED
from chainkit_node.storage.pruned_entries import insert_pruned_entries
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.pruning import Pruning
from chainkit_node.storage.range_digests import read_contents, read_highest_id, store_ranges
from support import publishes
from support.accounting import WAIT_NS, Bookkeeper, bookkeepers, key_of, listed
from support.network.originator import BEGIN_NS, SECOND_NS, Originator
from support.seeds import only_in_soak

HONEST, BAD, AWAY = 100, 300, 400
PER_HALF = 12
"""Envelopes of half a day, so that leaves of 64 are complete, and go, while a node is away."""
HALVES_AWAY = 12
SPACING = WAIT_NS // SECOND_NS // PER_HALF
"""Seconds between two envelopes."""
DAY = 86_400


class Log:
    """A node that originates, and holds the other one's log."""

    def __init__(self, books: Bookkeeper) -> None:
        self.books = books
        self.signer = Originator(books.node_id, key_of(books.node_id))
        self._payload = publishes.paid(publishes.group_message(), books.node_id)
        self.last_id = 0
        self.deleted: list[int] = []

    def publish(self, others: Sequence[Bookkeeper]) -> None:
        """Sign the envelopes of half a day; every second one lives for a day, others for thirty."""
        rows, charges = [], {}
        for _ in range(PER_HALF):
            self.last_id += 1
            seconds, days = self.last_id * SPACING, 1 if self.last_id % 2 else 30
            expiry = BEGIN_NS // SECOND_NS + seconds + days * DAY
            got = self.signer.received(
                self.signer.signed(self.last_id, seconds, self._payload, expiry=expiry)
            )
            rows.append(
                StoredEnvelope(
                    self.signer.node_id,
                    self.last_id,
                    got.originator_ns,
                    got.topic,
                    got.expires_at,
                    got.envelope,
                )
            )
            charges[self.last_id] = Charge(b"\1" * 20, 0, len(got.envelope), days)
        for each in (self.books, *others):
            with each.store.writing() as connection:
                each.store.insert_envelopes(connection, rows)
                insert_charges(each.store, connection, self.signer.node_id, charges.items())

    def prune(self, now: int) -> list[int]:
        """Delete what may be deleted of the own log."""
        pruning = Pruning(self.signer.node_id, True, now)
        store = self.books.store
        store_digests(self.books, self.signer.node_id)
        with store.writing() as connection:
            ids = range(1, self.last_id + 1)
            entries = pruning.read_entries(connection, ids)
            insert_pruned_entries(store.insert_new, connection, entries)
            return pruning.delete(connection, ids, {entry[2] for entry in entries}).sequence_ids

    def delete(self, sequence_id: int, *, is_called_expired: bool) -> None:
        """Delete an envelope of the own log, as no command does."""
        table = envelopes.c
        node_id = self.signer.node_id
        with self.books.store.writing() as connection:
            is_it = table.originator_id == node_id, table.sequence_id == sequence_id
            assert connection.execute(delete(envelopes).where(*is_it)).rowcount == 1
            if is_called_expired:
                PRUNED.add(connection, node_id, [sequence_id])
        self.deleted.append(sequence_id)


class Away:
    """A node that asks each originator for what it missed."""

    def __init__(self, books: Bookkeeper) -> None:
        self.books = books
        self.reports: list[tuple[int, Misbehavior, Sequence[bytes]]] = []
        ungiven = UngivenIds(lambda: None, lambda: True)
        store = books.store
        self.intake = Intake(
            store, self, self.now_ns, lambda new, late: None, lambda stored: None, ungiven
        )
        self.keeper = GapKeeper(store, self, self.now_ns)

    def now_ns(self) -> int:
        return self.books.now_ns

    def submit_own_safety(
        self, node_id: int, misbehavior: Misbehavior, envelopes: Sequence[bytes]
    ) -> None:
        self.reports.append((node_id, misbehavior, envelopes))

    def ask(self, log: Log) -> None:
        """Take what an originator serves, and its word on the rest."""
        node_id, now = log.signer.node_id, self.books.now_ns // SECOND_NS
        with log.books.store.reading() as connection:
            after = {node_id: self.intake.last_id(node_id)}
            rows = read_by_originators(connection, [node_id], after, 1_000, now)
        # As from another node: nothing is judged before the originator has answered.
        source = Source(node_id, log.signer.key.public_key, is_direct=False)
        self.intake.take([each.envelope for each in rows], source)
        store_digests(self.books, node_id)
        found = self._compared(log, node_id, now)
        self.keeper.answered(node_id, found.compared_through, found.only_there, found.expired_there)

    def _compared(self, log: Log, node_id: int, now: int) -> Differences:
        with (
            self.books.store.reading() as here,
            log.books.store.reading() as there,
        ):
            comparison = Comparison(node_id, read_highest_id(here, node_id))
            while asked := comparison.asked:
                through = comparison.through
                comparison.learn_highest(read_highest_id(there, node_id))
                answer = read_contents(there, node_id, through, asked, now)
                comparison.compare(read_contents(here, node_id, through, asked, now), answer)
            return comparison.differences()

    def learned(self, node_id: int) -> set[int]:
        """Ids of which it believes that they have expired."""
        with self.books.store.reading() as connection:
            return {
                each for run in LEARNED.runs(connection, node_id, range(1, 2**40)) for each in run
            }


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Log, Log, Away]]:
    with ExitStack() as stack:
        honest, bad, away = [
            stack.enter_context(closing(each.store)) and each
            for each in bookkeepers(tmp_path, listed(HONEST, BAD, AWAY))
        ]
        asking = Away(away)
        stack.callback(asking.intake.close)
        yield Log(honest), Log(bad), asking


def store_digests(books: Bookkeeper, originator_id: int) -> None:
    """Store the digests of complete leaves, as a node does between two steps."""
    with books.store.writing() as connection:
        while store_ranges(connection, originator_id, 1_000):
            pass


def deletes_too_early(bad: Log, turn: int) -> None:
    """Delete what no report covers yet, or what is covered, and call that expired."""
    attested = bad.books.attested(BAD)
    assert PER_HALF // 2 < attested == bad.last_id - PER_HALF
    if turn % 2:
        bad.delete(attested + PER_HALF // 2, is_called_expired=False)
    else:
        bad.delete(attested - PER_HALF // 2, is_called_expired=True)


def account(logs: Sequence[Log]) -> None:
    """Make the reports that are due, and let each node sign the other's."""
    for each in logs:
        each.books.makes()
    for _ in range(2):
        for one, other in (logs, logs[::-1]):
            assert Outcome.REFUSED not in one.books.catches_up(other.books)


@pytest.mark.conforms("T5", "N34")
@pytest.mark.parametrize("halves", [2 * HALVES_AWAY, pytest.param(730, marks=only_in_soak)])
def test_year__a_node_deletes_too_early__is_named_and_the_honest_one_is_not(
    nodes: tuple[Log, Log, Away], halves: int
) -> None:
    honest, bad, away = nodes
    logs = honest, bad
    gone: dict[int, set[int]] = {HONEST: set(), BAD: set()}
    for half in range(1, halves + 1):
        # Reports cover what was published before this half of a day.
        account(logs)
        honest.publish([bad.books])
        bad.publish([honest.books])
        now_ns = BEGIN_NS + half * WAIT_NS + SPACING * SECOND_NS
        for books in (honest.books, bad.books, away.books):
            books.now_ns = now_ns
        is_back = half % HALVES_AWAY == 0
        if is_back:
            deletes_too_early(bad, half // HALVES_AWAY)
        for log in logs:
            gone[log.signer.node_id].update(log.prune(now_ns // SECOND_NS))
        if is_back:
            for log in logs:
                away.ask(log)
                away.books.catches_up(log.books)

    assert {(node_id, offence) for node_id, offence, _ in away.reports} == {
        (BAD, Misbehavior.OUT_OF_ORDER)
    }
    shown = [
        [bad.signer.received(each).sequence_id for each in found] for *_, found in away.reports
    ]
    # Anybody can check the evidence: the bad node has signed both neighbors.
    assert shown == [[each + 1, each - 1] for each in bad.deleted]
    assert len(shown) == halves // HALVES_AWAY
    assert gone[BAD].isdisjoint(bad.deleted)
    for log in logs:
        node_id = log.signer.node_id
        # The id of each envelope that either node deleted rightly is known as expired.
        assert len(gone[node_id]) > PER_HALF
        assert away.learned(node_id) & gone[node_id]
        assert away.learned(node_id).isdisjoint(bad.deleted if log is bad else ())
        books = [each.bytes_of(node_id) for each in (honest.books, bad.books, away.books)]
        assert books[0] == books[1]
        assert books[2] == books[0][: len(books[2])] != []
