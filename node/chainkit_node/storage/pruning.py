"""Which envelopes may be deleted, and their deletion (XIP-69, ADR 64).

An envelope is deleted once all of this is so:

- it expired by its originator's word at least GRACE_SECONDS ago, so more than a day after its time;
- it is a message, a welcome or a key package, of a node that the registry lists: payloads of the
  chain, and those that break a rule, are never deleted, whatever expiry they have;
- payer reports that were attested cover it;
- it is not the newest key package of its topic: an installation that was away is invited by it.
  That of an installation that was revoked, in a final block, from each inbox that it was in may go;
- it is not its originator's last one: the next id follows from it;
- it is in no dispute, and the digests of its leaf are stored (``range_digests.py``).

Digests, and the entries of this node's topic heads, outlive it; what its payer owed goes with it.
No other process has to know: an indexer beside changes none of these rows, and what it computes
meanwhile is the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    Delete,
    LargeBinary,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    text,
    tuple_,
)

from chainkit.identity.identifiers import MemberKind
from chainkit.protocol.topic_heads import entry_digest
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import read_last
from chainkit_indexer.storage.schema import cursor, envelope_logs, envelopes, inbox_members
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import runs_of
from chainkit_node.storage.payer_reports import attested_through
from chainkit_node.storage.pruned_entries import PrunedEntry
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.range_digests import leaf_ids, stored_leaves

GRACE_SECONDS: Final = 24 * 60 * 60
"""Between an envelope's expiry and its deletion: by other nodes' clocks it expired, too."""

_KINDS: Final = (TopicKind.GROUP_MESSAGE, TopicKind.WELCOME, TopicKind.KEY_PACKAGE)
_held: Final = envelopes.c
_newer: Final = envelopes.alias("newer")
_kind: Final = func.substr(_held.topic, 1, 1, type_=LargeBinary())
_HAS_KIND: Final = or_(*(_kind == each.topic(b"") for each in _KINDS))
_member: Final = inbox_members.alias("member")
_is_member: Final = and_(
    _member.c.kind == MemberKind.INSTALLATION.value,
    _member.c.identifier == func.substr(_held.topic, 2, type_=LargeBinary()),
)
# Nothing brings back what is deleted, and a reorg takes a revocation back.
_is_final: Final = exists().where(
    envelope_logs.c.originator_id == _member.c.originator_id,
    envelope_logs.c.sequence_id == _member.c.revoked_sequence_id,
    envelope_logs.c.block_number <= select(cursor.c.final_block_number).scalar_subquery(),
)
_IS_REVOKED: Final = and_(
    exists().where(_is_member),
    not_(exists().where(_is_member, not_(_is_final))),
)
_IS_NEWEST_PACKAGE: Final = and_(
    _kind == TopicKind.KEY_PACKAGE.topic(b""),
    not_(_IS_REVOKED),
    not_(
        exists().where(
            _newer.c.topic == _held.topic,
            tuple_(_newer.c.originator_ns, _newer.c.originator_id)
            > tuple_(_held.originator_ns, _held.originator_id),
        )
    ),
)
_IS_DISPUTED: Final = exists().where(
    schema.disputed_envelopes.c.originator_id == _held.originator_id,
    schema.disputed_envelopes.c.sequence_id == _held.sequence_id,
)

_ORIGINATOR: Final = bindparam("originator", type_=BigInteger())
_FROM: Final = bindparam("first", type_=BigInteger())
_TO: Final = bindparam("last", type_=BigInteger())
_MAY_GO: Final = (
    _held.originator_id == _ORIGINATOR,
    _held.sequence_id.between(_FROM, _TO),
    _held.expires_at <= bindparam("cutoff", type_=BigInteger()),
    _HAS_KIND,
    not_(_IS_NEWEST_PACKAGE),
    not_(_IS_DISPUTED),
)
# Written once: SQLAlchemy takes longer to write a statement than SQLite to execute it.
_FIRST: Final = select(_held.sequence_id).where(*_MAY_GO).order_by(_held.sequence_id).limit(1)
_next: Final = (
    select(_held.sequence_id, func.length(_held.envelope).label("size"))
    .where(_held.originator_id == _ORIGINATOR, _held.sequence_id.between(_FROM, _TO))
    .order_by(_held.sequence_id)
    .limit(bindparam("most"))
    .subquery()
)
_EXTENT: Final = select(func.max(_next.c.sequence_id), func.sum(_next.c.size))
_COUNT: Final = (
    select(_kind, func.count(), func.sum(func.length(_held.envelope)))
    .where(*_MAY_GO)
    .group_by(_kind)
)
_FIND: Final = select(_held.sequence_id, _kind, func.length(_held.envelope)).where(*_MAY_GO)
_FIND_OWN: Final = select(_held.sequence_id, _held.topic, _held.expires_at, _held.envelope).where(
    *_MAY_GO
)


def _deletion(table: Table) -> Delete:
    is_of = table.c.originator_id == _ORIGINATOR
    return delete(table).where(is_of, table.c.sequence_id.between(_FROM, _TO))


_LOCK: Final = text("LOCK TABLE disputed_envelopes IN SHARE ROW EXCLUSIVE MODE")
_DELETE_ENVELOPES: Final = _deletion(envelopes)
_DELETE_CHARGES: Final = _deletion(schema.charges)


class Kept(StrEnum):
    """Why an envelope that has expired is not deleted."""

    PERMANENT = "permanent"
    """No node expires such a payload, whatever its originator wrote."""
    NEWEST_KEY_PACKAGE = "newest_key_package"
    DISPUTED = "disputed"
    NOT_ATTESTED = "not_attested"
    LAST = "last"
    """The originator's next id follows from it."""


@dataclass(slots=True)
class Tally:
    """How many envelopes of one kind, and their bytes."""

    envelopes: int = 0
    bytes: int = 0


class Deleted(NamedTuple):
    """Envelopes that were deleted."""

    sequence_ids: list[int]
    kinds: dict[TopicKind, Tally]


@dataclass(frozen=True, slots=True)
class Pruning:
    """Finds and deletes envelopes of one originator, by one look at the clock."""

    originator_id: int
    is_own: bool
    """This node originated the log, and signs heads of its topics."""
    now: int
    """Seconds since 1970."""

    @property
    def cutoff(self) -> int:
        """The latest expiry of what is deleted, in seconds since 1970."""
        return self.now - GRACE_SECONDS

    def next_batch(
        self, connection: Connection, ids: range, most: int, most_bytes: int
    ) -> range | None:
        """Return the next ids to give to ``delete``; None where nothing in the range may go.

        ``most`` and ``most_bytes`` bound the envelopes that are held under these ids, but for a
        single larger one. ``connection`` only reads: a long search keeps no writer waiting.
        """
        first = connection.scalar(_FIRST, self._asked(ids))
        while first is not None:
            asked = {"first": first, "last": ids[-1], "originator": self.originator_id}
            last, size = connection.execute(_EXTENT, asked | {"most": most}).one()
            if most == 1 or size <= most_bytes:
                return range(first, last + 1)
            most //= 2
        return None

    def read_entries(self, connection: Connection, ids: range) -> list[PrunedEntry]:
        """Return the entries of this node's envelopes in a range of ids that may be deleted."""
        rows = connection.execute(_FIND_OWN, self._asked(ids)).all()
        return [
            (topic, self.originator_id, number, expires_at, entry_digest(envelope))
            for number, topic, expires_at, envelope in rows
        ]

    def delete(self, connection: Connection, ids: range, entered: Container[int] = ()) -> Deleted:
        """Delete the envelopes of a range of ids that may be deleted, whatever range it is.

        One transaction, in which all is judged. In this node's own log nothing is deleted but the
        envelopes whose entries are stored, under the ids ``entered``.
        """
        keep_others_out(connection)
        rows = [
            row
            for part in self._ready(connection, ids)
            for row in connection.execute(_FIND, self._asked(part)).all()
            if not self.is_own or row[0] in entered
        ]
        found = [row[0] for row in rows]
        if runs := [self._place(run) for run in runs_of(found)]:
            connection.execute(_DELETE_ENVELOPES, runs)
            connection.execute(_DELETE_CHARGES, runs)
            PRUNED.add(connection, self.originator_id, found)
        return Deleted(found, _tallied((kind, 1, size) for _, kind, size in rows))

    def count(self, connection: Connection, ids: range) -> dict[TopicKind, Tally]:
        """Count what ``delete`` would delete."""
        found = [
            row
            for part in self._ready(connection, ids)
            for row in connection.execute(_COUNT, self._asked(part))
        ]
        return _tallied(found)

    def _ready(self, connection: Connection, ids: range) -> list[range]:
        """Return the parts of a range that reports cover and whose digests are stored."""
        last = min(ids[-1], self.through(connection))
        if last < ids[0]:
            return []
        leaves = stored_leaves(connection, self.originator_id, ids[0], last)
        parts = ((leaf_ids(run[0])[0], leaf_ids(run[-1])[-1]) for run in runs_of(leaves))
        return [range(max(ids[0], first), min(last, end) + 1) for first, end in parts]

    def count_kept(self, connection: Connection) -> dict[Kept, int]:
        """Count the envelopes that expired before ``cutoff`` and stay, by the reason.

        It reads the whole log. Those that wait for their digests alone are left out.
        """
        covered, through = (
            attested_through(connection, self.originator_id),
            self.through(connection),
        )
        of_kind = case(
            (_IS_NEWEST_PACKAGE, Kept.NEWEST_KEY_PACKAGE.value),
            (_IS_DISPUTED, Kept.DISPUTED.value),
            (_held.sequence_id > covered, Kept.NOT_ATTESTED.value),
            (_held.sequence_id > through, Kept.LAST.value),
        )
        # An empty topic has no kind, and a comparison with none is neither true nor false.
        reason = case((_HAS_KIND, of_kind), else_=Kept.PERMANENT.value)
        query = select(reason, func.count()).where(
            _held.originator_id == self.originator_id,
            _held.expires_at <= self.cutoff,
            reason.is_not(None),
        )
        found = connection.execute(query.group_by(reason).order_by(reason))
        return {Kept(name): count for name, count in found}

    def next_held(self, connection: Connection, first: int, through: int) -> int | None:
        """Return the lowest id from ``first`` on that is held; None behind ``through``."""
        query = select(func.min(_held.sequence_id)).where(
            _held.originator_id == self.originator_id, _held.sequence_id.between(first, through)
        )
        found: int | None = connection.scalar(query)
        return found

    def next_expiry(self, connection: Connection, ids: range) -> int | None:
        """Return the lowest expiry above ``cutoff`` within a range of ids; None without any."""
        query = select(func.min(_held.expires_at)).where(
            _held.originator_id == self.originator_id,
            _held.sequence_id.between(ids[0], ids[-1]),
            _held.expires_at > self.cutoff,
        )
        found: int | None = connection.scalar(query)
        return found

    def through(self, connection: Connection) -> int:
        """Return the last id that may be deleted, 0 for none."""
        last = read_last(connection, self.originator_id)
        if last is None:
            return 0
        return min(attested_through(connection, self.originator_id), last[0] - 1)

    def _asked(self, ids: range) -> dict[str, int]:
        return self._place(ids) | {"cutoff": self.cutoff}

    def _place(self, ids: range) -> dict[str, int]:
        return {"originator": self.originator_id, "first": ids[0], "last": ids[-1]}


def keep_others_out(connection: Connection) -> None:
    """Let no other process write disputes, or delete, until this transaction ends.

    To be called first: on PostgreSQL a transaction sees the state that its first query finds, and
    this is none. On SQLite one transaction writes at a time.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _tallied(rows: Iterable[tuple[bytes, int, int]]) -> dict[TopicKind, Tally]:
    """Return the sums of each kind, of rows with a topic, or its first byte, count and bytes."""
    counts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for topic, count, size in rows:
        kind = topic[0]
        counts[kind] = counts.get(kind, 0) + count
        sizes[kind] = sizes.get(kind, 0) + size
    return {TopicKind(kind): Tally(count, sizes[kind]) for kind, count in counts.items()}
