"""Goes through the logs of all nodes, and deletes what may be deleted (``storage/pruning.py``).

Theory of operation. Ids are looked through in blocks. A block is due again when the next of its
envelopes expires, or after a week, whatever came late; so a run reads what has something to delete,
and not the whole database. A batch is found in a transaction that only reads. It is judged again,
and deleted, in a short one: it has as many envelopes as a few milliseconds delete (``pace.py``). A
pause that is as long follows each, in which a node that runs beside publishes. In the node's own
log, the entries of a stretch of envelopes are stored first, sorted by topic: neighbours share pages
of the database. A process that is killed leaves whole batches, and perhaps entries of envelopes
that stay.

Deleting cannot be undone, and clocks go wrong. So the time is the earlier one of this machine's and
of the last block that the node followed: where they contradict each other, less is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from chainkit.types import TopicKind
from chainkit_indexer.registry.history import nodes_at
from chainkit_indexer.storage.envelopes import read_highest
from chainkit_indexer.storage.store import Store
from chainkit_node.pruning.pace import Pace
from chainkit_node.storage.id_blocks import block_ids, block_of
from chainkit_node.storage.pruned_entries import PrunedEntry, insert_pruned_entries
from chainkit_node.storage.pruned_ids import read_due, set_due
from chainkit_node.storage.pruning import GRACE_SECONDS, Kept, Pruning, Tally, keep_others_out

BATCH_ENVELOPES: Final = 500
MOST_ENVELOPES: Final = 900
"""The largest batch."""
MOST_ENTRIES: Final = 2_000
"""Entries of one transaction, which are short rows."""
STRETCH_ENVELOPES: Final = 16_384
"""Entries that are in memory together, sorted by topic: some 5 MB."""
BATCH_BYTES: Final = 8 << 20
"""Envelopes of one batch, but for a single larger one."""
GIVEN_BACK_BYTES: Final = 4 << 20
"""Cut off the file in one transaction."""
LONGEST_SECONDS: Final = 7 * 24 * 60 * 60
"""After which a block is looked through again, whatever was known of it."""


@dataclass(slots=True)
class PrunedLog:
    """The outcome of a run for one originator's log; a dry run counts alike."""

    originator_id: int
    through: int
    """The last id that could be deleted: attested payer reports cover it; 0 where none do."""
    kinds: dict[TopicKind, Tally] = field(default_factory=dict)
    kept: dict[Kept, int] = field(default_factory=dict)
    """How many envelopes that had expired stay; only a dry run counts them."""

    def add(self, kinds: Mapping[TopicKind, Tally]) -> None:
        """Add the envelopes of a batch."""
        for kind, some in kinds.items():
            tally = self.kinds.setdefault(kind, Tally())
            tally.envelopes += some.envelopes
            tally.bytes += some.bytes

    @property
    def envelopes(self) -> int:
        """The sum of all kinds."""
        return sum(each.envelopes for each in self.kinds.values())

    @property
    def bytes(self) -> int:
        """The sum of all kinds."""
        return sum(each.bytes for each in self.kinds.values())


class Pruner:
    """One run. ``store`` is opened beside a node that may run, or to read for a dry run."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        timer: Callable[[], float],
        sleep: Callable[[float], None],
        batch: int = BATCH_ENVELOPES,
        is_dry: bool = False,
    ) -> None:
        """Take the database, the time in seconds since 1970, and a timer in seconds.

        ``batch`` is how many envelopes one transaction deletes at most, up to MOST_ENVELOPES.
        """
        self._store = store
        self._timer = timer
        self._sleep = sleep
        self._pace = Pace(batch)
        self._entries_pace = Pace(MOST_ENTRIES)
        self._is_dry = is_dry
        position = store.position()
        followed = 0 if position is None else position.header.timestamp
        self.now = min(int(clock()), followed)
        """Seconds since 1970."""

    @property
    def cutoff(self) -> int:
        """The latest expiry of what is deleted, in seconds since 1970."""
        return self.now - GRACE_SECONDS

    def run(self, progress: Callable[[PrunedLog], None]) -> Iterator[PrunedLog]:
        """Go through one log after the other, in the order of their originators.

        ``progress`` gets the log after each batch.
        """
        own_key = self._store.identity.node_public_key
        with self._store.reading() as connection:
            held = read_highest(connection)
            nodes = {each.node_id: each.signing_key for each in nodes_at(connection, None)}
        chain = {each.originator_id for each in self._store.identity.contracts}
        for originator_id in sorted(held.keys() & nodes.keys() - chain):
            is_own = nodes[originator_id] == own_key
            pruning = Pruning(originator_id, is_own, self.now)
            yield self.prune_log(pruning, progress)

    def give_back(self) -> int | None:
        """Give the space of deleted envelopes back; return the bytes, None where that cannot be."""
        given = 0
        while True:
            before = self._timer()
            some = self._store.give_back(GIVEN_BACK_BYTES)
            if not some:
                return given or some
            given += some
            self._sleep(self._timer() - before)

    def prune_log(self, pruning: Pruning, progress: Callable[[PrunedLog], None]) -> PrunedLog:
        """Delete what may be deleted of one log. ``progress`` gets the log after each batch."""
        with self._store.reading() as connection:
            log = PrunedLog(pruning.originator_id, pruning.through(connection))
        first: int | None = 1
        while first is not None:
            with self._store.reading() as connection:
                first = pruning.next_held(connection, first, log.through)
                due = 0 if first is None else _due(connection, pruning, first)
            if first is not None:
                ids = block_ids(block_of(first))
                if due <= self.now:
                    self._prune_block(pruning, log, ids, progress)
                first = ids.stop
        if self._is_dry:
            with self._store.reading() as connection:
                log.kept = pruning.count_kept(connection)
        return log

    def _prune_block(
        self,
        pruning: Pruning,
        log: PrunedLog,
        ids: range,
        progress: Callable[[PrunedLog], None],
    ) -> None:
        rest = range(ids.start, min(ids.stop, log.through + 1))
        if self._is_dry:
            self._count(pruning, log, rest)
            progress(log)
            return
        while rest:
            stretch, entered = self._enter(pruning, rest) if pruning.is_own else (rest, frozenset())
            self._delete_within(pruning, log, stretch, entered, progress)
            rest = range(stretch.stop, rest.stop)
        if log.through >= ids[-1]:
            self._note(pruning, ids)

    def _count(self, pruning: Pruning, log: PrunedLog, ids: range) -> None:
        with self._store.reading() as connection:
            log.add(pruning.count(connection, ids))

    def _enter(self, pruning: Pruning, ids: range) -> tuple[range, Set[int]]:
        """Store the entries of the own envelopes that are deleted next.

        Return the part of the range that was looked through, and the ids that have entries.
        """
        entries: list[PrunedEntry] = []
        rest = ids
        while rest and len(entries) < STRETCH_ENVELOPES:
            begun = self._timer()
            with self._store.reading() as connection:
                batch = pruning.next_batch(connection, rest, MOST_ENVELOPES, BATCH_BYTES)
                if batch is None:
                    rest = range(rest.stop, rest.stop)
                    break
                entries += pruning.read_entries(connection, batch)
            rest = range(batch.stop, rest.stop)
            self._sleep(self._timer() - begun)
        self._store_entries(sorted(entries))
        return range(ids.start, rest.start), {sequence_id for _, _, sequence_id, *_ in entries}

    def _store_entries(self, entries: Sequence[PrunedEntry]) -> None:
        start = 0
        while some := entries[start : start + self._entries_pace.envelopes]:
            with self._writing(self._entries_pace) as connection:
                keep_others_out(connection)
                insert_pruned_entries(self._store.insert_new, connection, some)
            start += len(some)

    def _delete_within(
        self,
        pruning: Pruning,
        log: PrunedLog,
        ids: range,
        entered: Set[int],
        progress: Callable[[PrunedLog], None],
    ) -> None:
        rest = ids
        while rest:
            begun = self._timer()
            with self._store.reading() as connection:
                batch = pruning.next_batch(connection, rest, self._pace.envelopes, BATCH_BYTES)
            if batch is None:
                return
            self._sleep(self._timer() - begun)
            with self._writing(self._pace) as connection:
                log.add(pruning.delete(connection, batch, entered).kinds)
            progress(log)
            rest = range(batch.stop, rest.stop)

    @contextmanager
    def _writing(self, pace: Pace) -> Iterator[Connection]:
        """Run a transaction, and pause for as long as it took."""
        with self._store.writing() as connection:
            # Only now: waiting for another writer keeps nobody waiting.
            begun = self._timer()
            yield connection
            worked = self._timer() - begun
        held = self._timer() - begun
        # PostgreSQL's writers wait for no commit of others: small transactions would only add some.
        pace.took(pace.envelopes, held if self._store.file else worked)
        self._sleep(held)

    def _note(self, pruning: Pruning, ids: range) -> None:
        """Record when a block that is covered as a whole is due again."""
        with self._store.reading() as connection:
            expiry = pruning.next_expiry(connection, ids)
        due = self.now + LONGEST_SECONDS
        if expiry is not None:
            due = min(due, expiry + GRACE_SECONDS)
        with self._store.writing() as connection:
            keep_others_out(connection)
            set_due(connection, pruning.originator_id, block_of(ids[0]), due)


def _due(connection: Connection, pruning: Pruning, sequence_id: int) -> int:
    return read_due(connection, pruning.originator_id, block_of(sequence_id))
