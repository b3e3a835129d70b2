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

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Delete,
    LargeBinary,
    Row,
    Select,
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
    tuple_,
)

from chainkit.identity.identifiers import MemberKind
from chainkit.protocol.topic_heads import Entry, entry_digest
from chainkit.types import TopicKind
from chainkit_indexer.storage.envelopes import read_last
from chainkit_indexer.storage.schema import cursor, envelope_logs, envelopes, inbox_members
from chainkit_node.storage import schema
from chainkit_node.storage.gaps import runs_of
from chainkit_node.storage.payer_reports import attested_through
from chainkit_node.storage.pruned_entries import InsertRows, insert_pruned_entries
from chainkit_node.storage.pruned_ids import PRUNED
from chainkit_node.storage.range_digests import leaf_of, stored_leaves

GRACE_SECONDS: Final = 24 * 60 * 60
"""Between an envelope's expiry and its deletion: by other nodes' clocks it expired, too."""
_READ_AT_ONCE: Final = 50
"""Envelopes that are in memory together."""

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

_MAY_GO: Final = (
    _held.originator_id == bindparam("originator", type_=BigInteger()),
    _held.sequence_id.between(
        bindparam("first", type_=BigInteger()), bindparam("last", type_=BigInteger())
    ),
    _held.expires_at <= bindparam("cutoff", type_=BigInteger()),
    _HAS_KIND,
    not_(_IS_NEWEST_PACKAGE),
    not_(_IS_DISPUTED),
)
# Written once: SQLAlchemy takes longer to write a statement than SQLite to execute it.
_FIND_IDS: Final = select(_held.sequence_id).where(*_MAY_GO)


def _finding(last_column: ColumnElement[Any]) -> Select[Any]:
    """Return the query of the first rows; its rows come in pieces, as envelopes may be large."""
    return (
        select(_held.sequence_id, _held.topic, _held.expires_at, last_column)
        .where(*_MAY_GO)
        .order_by(_held.sequence_id)
        .limit(bindparam("most"))
        .execution_options(yield_per=_READ_AT_ONCE)
    )


_FIND: Final = _finding(func.length(_held.envelope))
_FIND_OWN: Final = _finding(_held.envelope)


def _deletion(table: Table) -> Delete:
    first, last = (bindparam(name, type_=BigInteger()) for name in ("first", "last"))
    is_of = table.c.originator_id == bindparam("originator", type_=BigInteger())
    return delete(table).where(is_of, table.c.sequence_id.between(first, last))


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


class Prunable(NamedTuple):
    """An envelope that may be deleted."""

    sequence_id: int
    topic: bytes
    expires_at: int
    """Seconds since 1970."""
    size: int
    """Bytes of the OriginatorEnvelope."""
    digest: bytes = b""
    """The 32 bytes that this node signed; empty where another node originated it."""

    @property
    def entry(self) -> Entry:
        """The entry of this node's topic heads."""
        return Entry(self.sequence_id, self.digest, self.expires_at)

    @property
    def kind(self) -> TopicKind:
        """The kind of its payload."""
        return TopicKind(self.topic[0])


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

    def find(
        self, connection: Connection, ids: range, most: int, most_bytes: int
    ) -> list[Prunable]:
        """Return the first envelopes within a range of ids that may be deleted, one at least.

        ``most_bytes`` bounds them together, but for a single larger one.
        """
        last = min(ids[-1], self.through(connection))
        ready = stored_leaves(connection, self.originator_id, ids[0], last)
        query = _FIND_OWN if self.is_own else _FIND
        found: list[Prunable] = []
        total = 0
        with connection.execute(query, self._asked(ids[0], last) | {"most": most}) as rows:
            for row in map(_own if self.is_own else _other, rows):
                total += row.size
                if found and total > most_bytes:
                    break
                if leaf_of(row.sequence_id) in ready:
                    found.append(row)
        return found

    def delete(
        self, connection: Connection, found: Sequence[Prunable], insert: InsertRows
    ) -> list[Prunable]:
        """Delete envelopes, and return those that were; the others may not be deleted any more.

        One transaction, which reads again what another process may have changed since ``find``:
        disputes and digests. The last id that may be deleted never falls. ``found`` are a few
        hundred, in the order of their ids.
        """
        if not found:
            return []
        asked = self._asked(found[0].sequence_id, found[-1].sequence_id)
        allowed = set(connection.scalars(_FIND_IDS, asked).all())
        ready = stored_leaves(connection, self.originator_id, asked["first"], asked["last"])
        rows = [
            each
            for each in found
            if each.sequence_id in allowed and leaf_of(each.sequence_id) in ready
        ]
        if self.is_own:
            entries = ((each.topic, each.entry) for each in rows)
            insert_pruned_entries(insert, connection, self.originator_id, entries)
        ids = [each.sequence_id for each in rows]
        runs = [
            {"originator": self.originator_id, "first": run[0], "last": run[-1]}
            for run in runs_of(ids)
        ]
        if runs:
            connection.execute(_DELETE_ENVELOPES, runs)
            connection.execute(_DELETE_CHARGES, runs)
            PRUNED.add(connection, self.originator_id, ids)
        return rows

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

    def _asked(self, first: int, last: int) -> dict[str, int]:
        ids = {"originator": self.originator_id, "first": first, "last": last}
        return ids | {"cutoff": self.cutoff}


def _own(row: Row[Any]) -> Prunable:
    envelope = row.envelope
    place = row.sequence_id, row.topic, row.expires_at
    return Prunable(*place, len(envelope), entry_digest(envelope))


def _other(row: Row[Any]) -> Prunable:
    return Prunable._make((*row, b""))
