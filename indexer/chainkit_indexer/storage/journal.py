"""Payloads that a reorg took back, and the outcome of each.

A served envelope is never deleted: it moves to the journal as dropped. When a later page holds the
same payload of the same transaction again, the entry becomes kept (same sequence id) or moved
(another id). An entry that stays dropped is not on the chain.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, bindparam, delete, func, insert, select, update

from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.served_topic import served_topic
from chainkit.signatures import keccak256
from chainkit.types import BlockReference, TopicKind
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import BlockCut
from chainkit_indexer.types import IndexedBlock, PlacedEvent

_LOOKUP_CHUNK: Final = 500
"""Transactions looked up, or rows moved, by one statement: databases limit a statement's
parameters."""

_RECORD_OUTCOME: Final = update(schema.journal).where(
    schema.journal.c.reorg_id == bindparam("of_reorg"),
    schema.journal.c.originator_id == bindparam("of_originator"),
    schema.journal.c.sequence_id == bindparam("of_sequence"),
)
"""Executed with ``_outcome``'s values, of which those named like columns are set."""

Payload = tuple[int, bytes, bytes]
"""Originator id, transaction hash and digest: by which a payload is known again after a reorg."""


@dataclass(frozen=True, slots=True, order=True)
class Retracted:
    """A journal entry whose payload was not seen again so far; fields are columns."""

    reorg_id: int
    originator_id: int
    sequence_id: int
    transaction_hash: bytes
    payload_digest: bytes

    @property
    def payload(self) -> Payload:
        """The payload's key."""
        return self.originator_id, self.transaction_hash, self.payload_digest


def payload_digest(topic: bytes, payload: bytes) -> bytes:
    """Return 32 bytes that distinguish a transaction's payloads: keccak256 of topic and payload.

    The topics of a contract have one length, so the concatenation is unambiguous.
    """
    return keccak256(topic + payload)


def match_outcomes(
    retracted: Iterable[Retracted], payloads: Iterable[tuple[Payload, int]]
) -> Iterator[tuple[Retracted, int]]:
    """Pair journal entries with the same payloads on the chain; yield the entry and its new id.

    One payload matches one entry, because a single transaction may post the same payload more than
    once: entries of equal sequence id are matched first, then the others, the lowest first.
    ``payloads`` come with their sequence ids in chain order, and all payloads of a transaction come
    together.
    """
    entries, others = sorted(retracted), []
    at_its_id = {(entry.payload, entry.sequence_id): entry for entry in entries}
    kept: set[Retracted] = set()
    for payload, sequence_id in payloads:
        if (entry := at_its_id.get((payload, sequence_id))) is None:
            others.append((payload, sequence_id))
            continue
        kept.add(entry)
        yield entry, sequence_id
    waiting: defaultdict[Payload, deque[Retracted]] = defaultdict(deque)
    for entry in entries:
        if entry not in kept:
            waiting[entry.payload].append(entry)
    for payload, sequence_id in others:
        if left := waiting.get(payload):
            yield left.popleft(), sequence_id


def insert_reorg(
    connection: Connection,
    position: IndexedBlock,
    ancestor: IndexedBlock,
    rewound_to: int | None = None,
) -> int:
    """Record that the chain forked off above ``ancestor``; return the reorg's id, from 1.

    ``rewound_to`` is the height that the operator asked for, if this is a rewind.
    """
    old_head, new_head = position.header.reference, ancestor.header.reference
    return insert_reorg_between(connection, old_head, new_head, rewound_to)


def insert_reorg_between(
    connection: Connection,
    old_head: BlockReference,
    ancestor: BlockReference,
    rewound_to: int | None = None,
) -> int:
    """Do the same when only the references of the two blocks are known."""
    latest = connection.execute(select(func.max(schema.reorgs.c.id))).scalar_one()
    reorg_id: int = (latest or 0) + 1
    connection.execute(
        insert(schema.reorgs).values(
            id=reorg_id,
            ancestor_number=ancestor.number,
            ancestor_hash=ancestor.hash,
            old_head_number=old_head.number,
            old_head_hash=old_head.hash,
            depth=old_head.number - ancestor.number,
            rewound_to=rewound_to,
        )
    )
    return reorg_id


def read_reorgs_after(connection: Connection, reorg_id: int) -> dict[int, int]:
    """Return the heights of the common ancestors of later reorgs and rewinds, by their ids."""
    reorgs = schema.reorgs.c
    query = select(reorgs.id, reorgs.ancestor_number).where(reorgs.id > reorg_id)
    return {found: number for found, number in connection.execute(query)}


def read_lowest_retracted(
    connection: Connection, reorg_id: int, originator_ids: Collection[int]
) -> dict[int, int]:
    """Return the lowest sequence id that later reorgs and rewinds took back, of some originators.

    An originator of which nothing was taken back is missing.
    """
    journal = schema.journal.c
    query = select(journal.originator_id, func.min(journal.sequence_id)).where(
        journal.reorg_id > reorg_id, journal.originator_id.in_(originator_ids)
    )
    return {row[0]: row[1] for row in connection.execute(query.group_by(journal.originator_id))}


def retract_after(connection: Connection, table: Table, cut: BlockCut, reorg_id: int) -> int:
    """Move the rows of a payload table above a block to the journal; return how many.

    With the logs go the envelopes: also one that has no log, which only a fault leaves behind.
    """
    query = _with_topic(table)
    columns = query.selected_columns
    query = query.where(cut.above(columns))
    # Set on the statement: set on the connection it would hold for the insertion below, too.
    ordered = query.order_by(columns.sequence_id).execution_options(yield_per=_LOOKUP_CHUNK)
    with connection.execute(ordered) as rows:
        for chunk in rows.mappings().partitions():
            entries = [_journal_row(row, reorg_id) for row in chunk]
            connection.execute(insert(schema.journal), entries)
    if table is schema.envelope_logs:
        # First: sparse ids are looked up in the logs.
        _delete(connection, schema.envelopes, cut)
    return _delete(connection, table, cut)


def retract_inboxes(connection: Connection, originator_id: int, last: int) -> None:
    """Take back what identity updates above a sequence id made of the inboxes' members."""
    members, refused, cursors = schema.inbox_members, schema.refused_updates, schema.inbox_cursors
    added = members.c.originator_id == originator_id
    connection.execute(delete(members).where(added, members.c.associated_sequence_id > last))
    revoked = update(members).where(added, members.c.revoked_sequence_id > last)
    connection.execute(revoked.values(revoked_sequence_id=None))
    _delete(connection, refused, BlockCut(originator_id, last, None))
    is_beyond = cursors.c.originator_id == originator_id, cursors.c.sequence_id > last
    connection.execute(update(cursors).where(*is_beyond).values(sequence_id=last))


def _delete(connection: Connection, table: Table, cut: BlockCut) -> int:
    return connection.execute(delete(table).where(cut.above(table.c))).rowcount


def find_final_above(
    connection: Connection, table: Table, cut: BlockCut, final_block: int
) -> int | None:
    """Return the sequence id of a final row that ``retract_after`` would take back.

    None where there is no such row: always, unless the known blocks contradict the rows.
    """
    query = select(table.c.sequence_id).where(
        cut.above(table.c), table.c.block_number <= final_block
    )
    found: int | None = connection.scalar(query.limit(1))
    return found


def _with_topic(table: Table) -> Select[Any]:
    if table is schema.envelope_logs:
        return select(schema.chain_envelopes)
    contracts = schema.contracts
    return select(table, contracts.c.kind).join(contracts, contracts.c.address == table.c.contract)


def _journal_row(row: Mapping[Any, Any], reorg_id: int) -> dict[str, Any]:
    place = {name: row[name] for name in schema.journal.c.keys() if name in row}  # noqa: SIM118
    return place | {
        "reorg_id": reorg_id,
        "envelope": row.get("envelope"),
        "payload_digest": _digest_of_row(row),
        "outcome": schema.DROPPED,
    }


def _digest_of_row(row: Mapping[Any, Any]) -> bytes:
    if "envelope" in row:
        payload = parse_originator_envelope(row["envelope"]).client_envelope
        return payload_digest(row["topic"], payload)
    topic = served_topic(TopicKind(row["kind"]), row["identifier"], row["payload"])
    return payload_digest(topic, row["payload"])


def record_outcomes(connection: Connection, events: Sequence[PlacedEvent]) -> None:
    """Mark the journal entries whose payloads a new page holds as kept or moved."""
    if connection.scalar(select(schema.journal.c.reorg_id).limit(1)) is None:
        return
    retracted = _dropped_of(connection, sorted({each.log.transaction_hash for each in events}))
    transactions = {entry.transaction_hash for entry in retracted}
    payloads = [_payload_of(each) for each in events if each.log.transaction_hash in transactions]
    outcomes = [_outcome(*matched) for matched in match_outcomes(retracted, payloads)]
    if outcomes:
        # One statement for all: a deep reorg's are thousands.
        connection.execute(_RECORD_OUTCOME, outcomes)


def _payload_of(placed: PlacedEvent) -> tuple[Payload, int]:
    event = placed.event
    topic = served_topic(event.kind, event.identifier, event.payload)
    digest = payload_digest(topic, event.payload)
    return (event.originator_id, placed.log.transaction_hash, digest), event.sequence_id


def _dropped_of(connection: Connection, transactions: Sequence[bytes]) -> list[Retracted]:
    journal = schema.journal
    columns = [journal.c[field.name] for field in fields(Retracted)]
    found: list[Retracted] = []
    for start in range(0, len(transactions), _LOOKUP_CHUNK):
        chunk = transactions[start : start + _LOOKUP_CHUNK]
        query = select(*columns).where(
            journal.c.transaction_hash.in_(chunk), journal.c.outcome == schema.DROPPED
        )
        found.extend(Retracted(*row) for row in connection.execute(query))
    return found


def _outcome(entry: Retracted, sequence_id: int) -> dict[str, Any]:
    is_kept = entry.sequence_id == sequence_id
    return {
        "of_reorg": entry.reorg_id,
        "of_originator": entry.originator_id,
        "of_sequence": entry.sequence_id,
        "outcome": schema.KEPT if is_kept else schema.MOVED,
        "new_sequence_id": None if is_kept else sequence_id,
    }
