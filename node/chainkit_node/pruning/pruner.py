"""Goes through the logs of all nodes, and deletes what may be deleted (``storage/pruning.py``).

Theory of operation. Ids are looked through in blocks. A block is due again when the next of its
envelopes expires, or after a week, whatever came late; so a run reads what has something to delete,
and not the whole database. Envelopes are found in a transaction that only reads. Each batch is then
checked again and deleted in one short transaction, and a pause follows that is as long, in which a
node that runs beside publishes. Only one process at a time writes to a file of SQLite: there a
batch has as many envelopes as a few milliseconds delete (``pace.py``). A process that is killed
leaves whole batches.

Deleting cannot be undone, and clocks go wrong. So the time is the earlier one of this machine's and
of the last block that the node followed: where they contradict each other, less is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from chainkit.types import TopicKind
from chainkit_indexer.registry.history import nodes_at
from chainkit_indexer.storage.envelopes import read_highest
from chainkit_indexer.storage.store import Store
from chainkit_node.pruning.pace import HELD_SECONDS, Pace
from chainkit_node.storage.id_blocks import block_ids, block_of
from chainkit_node.storage.pruned_ids import read_due, set_due
from chainkit_node.storage.pruning import GRACE_SECONDS, Kept, Prunable, Pruning

BATCH_ENVELOPES: Final = 500
MOST_ENVELOPES: Final = 900
"""The largest batch: SQLite before version 3.32 takes 999 parameters."""
BATCH_BYTES: Final = 8 << 20
"""Envelopes of one batch, but for a single larger one."""
GIVEN_BACK_BYTES: Final = 4 << 20
"""Cut off the file in one transaction."""
LONGEST_SECONDS: Final = 7 * 24 * 60 * 60
"""After which a block is looked through again, whatever was known of it."""


@dataclass(slots=True)
class Tally:
    """How many envelopes of one kind, and their bytes."""

    envelopes: int = 0
    bytes: int = 0


@dataclass(slots=True)
class PrunedLog:
    """The outcome of a run for one originator's log; a dry run counts alike."""

    originator_id: int
    through: int
    """The last id that could be deleted: attested payer reports cover it; 0 where none do."""
    kinds: dict[TopicKind, Tally] = field(default_factory=dict)
    kept: dict[Kept, int] = field(default_factory=dict)
    """How many envelopes that had expired stay; only a dry run counts them."""

    def add(self, rows: Sequence[Prunable]) -> None:
        """Count envelopes."""
        for row in rows:
            tally = self.kinds.setdefault(row.kind, Tally())
            tally.envelopes += 1
            tally.bytes += row.size

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
        # Where a server stores the rows, no writer waits for another one's end.
        self._pace = Pace(batch, HELD_SECONDS if store.file else None)
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
            yield self._prune_log(pruning, progress)

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

    def _prune_log(self, pruning: Pruning, progress: Callable[[PrunedLog], None]) -> PrunedLog:
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
        while rest:
            with self._store.reading() as connection:
                found = pruning.find(connection, rest, self._pace.envelopes, BATCH_BYTES)
            if not found:
                break
            log.add(found if self._is_dry else self._delete(pruning, found))
            progress(log)
            rest = range(found[-1].sequence_id + 1, rest.stop)
        if not self._is_dry and log.through >= ids[-1]:
            self._note(pruning, ids)

    def _delete(self, pruning: Pruning, found: Sequence[Prunable]) -> Sequence[Prunable]:
        with self._store.writing() as connection:
            # Only now: waiting for another writer keeps nobody waiting.
            begun = self._timer()
            deleted = pruning.delete(connection, found, self._store.insert_rows)
        held = self._timer() - begun
        self._pace.took(len(found), held)
        self._sleep(held)
        return deleted

    def _note(self, pruning: Pruning, ids: range) -> None:
        """Record when a block that is covered as a whole is due again."""
        with self._store.reading() as connection:
            expiry = pruning.next_expiry(connection, ids)
        due = self.now + LONGEST_SECONDS
        if expiry is not None:
            due = min(due, expiry + GRACE_SECONDS)
        with self._store.writing() as connection:
            set_due(connection, pruning.originator_id, block_of(ids[0]), due)


def _due(connection: Connection, pruning: Pruning, sequence_id: int) -> int:
    return read_due(connection, pruning.originator_id, block_of(sequence_id))
