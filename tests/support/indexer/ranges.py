"""An originator's log in a database, changed in every possible way, beside an oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, insert

from chainkit.protocol.log_ranges import (
    LogRange,
    RangeContent,
    disputed_digest,
    envelope_digest,
    root_of,
)
from chainkit.protocol.wire import UNSIGNED_TAG, bytes_field
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import StoredEnvelope, insert_envelopes
from chainkit_indexer.storage.schema import envelopes
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import GapState
from chainkit_node.storage.payer_reports import StoredPayerReport, insert_report
from chainkit_node.storage.pruning import GRACE_SECONDS, Pruning
from chainkit_node.storage.range_digests import forget_ranges, read_contents, store_ranges
from support.log_sides import ORIGINATOR, Side

NOW = 1_000
"""Seconds since 1970."""


def row(
    sequence_id: int,
    version: int = 1,
    expires_at: int | None = None,
    originator_id: int = ORIGINATOR,
) -> StoredEnvelope:
    """Return a row whose envelope is of its originator, id and version."""
    unsigned = b"%d %d %d" % (originator_id, sequence_id, version)
    envelope = bytes_field(UNSIGNED_TAG, unsigned)
    return StoredEnvelope(originator_id, sequence_id, sequence_id, b"\0t", expires_at, envelope)


@dataclass
class ChangingLog:
    """Changes a database as a node does, and keeps its own copy of the required content."""

    database: Database
    rows: dict[int, StoredEnvelope] = field(default_factory=dict)
    disputed: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    """Ids that other nodes call expired."""
    pruned: dict[int, bytes] = field(default_factory=dict)
    """Digests of envelopes that were pruned here."""
    attested: int = 0
    highest: int = 0

    def side(self) -> Side:
        """Return what the log has to answer with."""
        digests = {each: envelope_digest(row.envelope) for each, row in self.rows.items()}
        digests |= self.pruned
        digests |= {each: disputed_digest(ORIGINATOR, each) for each in self.disputed}
        expired = (each for each, row in self.rows.items() if (row.expires_at or NOW + 1) <= NOW)
        return Side(digests, frozenset([*self.gone, *self.pruned, *expired]))

    def append(self, *rows: StoredEnvelope) -> None:
        """Add envelopes behind the last."""
        with self.database.writing() as connection:
            insert_envelopes(self.database, connection, rows)
        self._hold(*rows)

    def repair(self, *rows: StoredEnvelope) -> None:
        """Add envelopes between others."""
        with self.database.writing() as connection:
            insert_envelopes(self.database, connection, rows)
            forget_ranges(connection, ORIGINATOR, [row.sequence_id for row in rows])
        self._hold(*rows)

    def dispute(self, sequence_id: int) -> None:
        """Know of a second envelope under an id."""
        values = {
            "originator_id": ORIGINATOR,
            "sequence_id": sequence_id,
            "envelope": row(sequence_id, 2).envelope,
        }
        with self.database.writing() as connection:
            connection.execute(insert(schema.disputed_envelopes).values(values))
            forget_ranges(connection, ORIGINATOR, [sequence_id])
        self.disputed.add(sequence_id)

    def prune(self, through: int, most: int) -> None:
        """Prune what expired, once attested reports cover ids up to one."""
        pruning = Pruning(ORIGINATOR, False, NOW + GRACE_SECONDS)
        with self.database.writing() as connection:
            if through > self.attested:
                first = self.attested + 1
                covered = StoredPayerReport(ORIGINATOR, first, through, b"", b"", b"", 1, 1)
                insert_report(connection, covered)
                self.attested = through
            ids = pruning.next_batch(connection, range(1, self.highest + 1), most, 1 << 20)
            if ids is None:
                return
            deleted = pruning.delete(connection, ids).sequence_ids
        assert len(deleted) <= most
        for each in deleted:
            self.pruned[each] = envelope_digest(self.rows.pop(each).envelope)

    def expire(self, first: int, last: int) -> None:
        """Hold envelopes no more that others call expired; no gap may be there yet."""
        table = envelopes
        values = {
            "originator_id": ORIGINATOR,
            "first_id": first,
            "last_id": last,
            "state": GapState.EXPIRED.value,
            "changed_ns": 0,
        }
        of_ids = table.c.sequence_id.between(first, last)
        ids = range(first, last + 1)
        with self.database.writing() as connection:
            connection.execute(delete(table).where(table.c.originator_id == ORIGINATOR, of_ids))
            connection.execute(insert(schema.gaps).values(values))
            forget_ranges(connection, ORIGINATOR, ids)
        self.gone.update(ids)
        for each in ids:
            self.rows.pop(each, None)

    def store(self, most: int) -> int:
        """Store the digests of a piece; return how many ranges were missing."""
        with self.database.writing() as connection:
            return store_ranges(connection, ORIGINATOR, most)

    def content(self, *asked: LogRange, through: int) -> list[RangeContent]:
        """Return what the database answers."""
        with self.database.reading() as connection:
            return self.content_in(connection, *asked, through=through)

    def content_in(
        self, connection: Connection, *asked: LogRange, through: int
    ) -> list[RangeContent]:
        """Return what the database answers in a transaction."""
        return read_contents(connection, ORIGINATOR, through, asked, NOW)

    def check(self, through: int) -> None:
        """Fail unless each range up to an id is answered as the oracle answers it."""
        oracle = self.side()
        for level in range(root_of(max(self.highest, 1)).level + 1):
            count = -(-self.highest // LogRange(level, 0).last)
            asked = [LogRange(level, number) for number in range(count + 1)]
            expected = [oracle.content(each, through) for each in asked]
            assert self.content(*asked, through=through) == expected

    def _hold(self, *rows: StoredEnvelope) -> None:
        self.rows |= {row.sequence_id: row for row in rows}
        self.highest = max(self.highest, *(row.sequence_id for row in rows))


def change_at_random(log: ChangingLog, seed: int, steps: int) -> None:
    """Change a log in all ways, store pieces of its digests, and check it after each change."""
    chance = random.Random(seed)
    for _ in range(steps):
        missing = [
            each
            for each in range(1, log.highest)
            if each not in log.rows and each not in log.pruned and each not in log.gone
        ]
        kind = chance.choice(("append", "repair", "dispute", "expire", "prune", "store"))
        if kind == "append" or not log.rows:
            log.append(*_run_behind(log.highest, chance))
        elif kind == "repair" and missing:
            log.repair(*map(row, chance.sample(missing, min(3, len(missing)))))
        elif kind == "dispute" and (clean := sorted(log.rows.keys() - log.disputed)):
            log.dispute(chance.choice(clean))
        elif kind == "expire":
            first = max([0, *log.gone, *log.pruned]) + chance.randint(1, 70)
            if first <= log.highest:
                log.expire(first, min(first + chance.randint(0, 200), log.highest))
        elif kind == "prune":
            log.prune(chance.randint(1, log.highest), chance.choice((10, 300)))
        else:
            log.store(chance.choice((1, 3, 20)))
        log.check(log.highest)
        log.check(chance.randint(0, log.highest))
    while log.store(7):
        log.check(log.highest)


def _run_behind(highest: int, chance: random.Random) -> list[StoredEnvelope]:
    ids = range(highest + 1, highest + chance.randint(2, 900))
    held = [each for each in ids if chance.random() > 0.01 or each == ids[-1]]
    return [row(each, expires_at=chance.choice((None, NOW, NOW + 1))) for each in held]
