"""The inboxes' members, as the identity updates up to a cursor made them; see ``schema``.

A reorg takes members back in the transaction that takes back the updates (``Store.retract``), also
where ``index rewind`` runs without a node: so the members' tables are the indexer's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select, tuple_, update

from chainkit_indexer.storage import schema

_AT_ONCE: Final = 500
"""Inboxes that one statement looks for: databases limit its parameters."""

Identifier = tuple[str, bytes]
"""A ``MemberKind`` and the key's bytes."""


@dataclass(frozen=True, slots=True)
class JudgedUpdate:
    """An identity update and its outcome."""

    originator_id: int
    sequence_id: int
    inbox_id: bytes
    """32 bytes."""
    associated: Sequence[Identifier] = ()
    revoked: Sequence[Identifier] = ()
    refusal: str | None = None
    """The rule that the update breaks; None where it breaks none."""


def read_inbox_cursors(connection: Connection) -> dict[int, int]:
    """Return the sequence id up to which the members follow each originator."""
    query = select(schema.inbox_cursors.c.originator_id, schema.inbox_cursors.c.sequence_id)
    return {row[0]: row[1] for row in connection.execute(query)}


def read_inbox_cursor(connection: Connection, originator_id: int) -> int:
    """Return the sequence id up to which the members follow an originator; 0 before the first."""
    return read_inbox_cursors(connection).get(originator_id, 0)


def move_inbox_cursor(connection: Connection, originator_id: int, sequence_id: int) -> None:
    """Note up to where the members follow an originator."""
    of_originator = schema.inbox_cursors.c.originator_id == originator_id
    connection.execute(delete(schema.inbox_cursors).where(of_originator))
    row = {"originator_id": originator_id, "sequence_id": sequence_id}
    connection.execute(insert(schema.inbox_cursors).values(row))


def read_refused(
    connection: Connection, inbox_ids: Collection[bytes]
) -> frozenset[tuple[int, int]]:
    """Return originator and sequence ids of some inboxes' updates that changed nothing."""
    refused = schema.refused_updates.c
    query = select(refused.originator_id, refused.sequence_id)
    found: set[tuple[int, int]] = set()
    asked = list(inbox_ids)
    for start in range(0, len(asked), _AT_ONCE):
        some = query.where(refused.inbox_id.in_(asked[start : start + _AT_ONCE]))
        found.update((row[0], row[1]) for row in connection.execute(some))
    return frozenset(found)


def record_judged(connection: Connection, judged: JudgedUpdate) -> None:
    """Store the outcome of an update."""
    if judged.refusal is not None:
        row = {
            "originator_id": judged.originator_id,
            "sequence_id": judged.sequence_id,
            "inbox_id": judged.inbox_id,
            "reason": judged.refusal,
        }
        connection.execute(insert(schema.refused_updates).values(row))
        return
    members = schema.inbox_members
    for kind, identifier in judged.revoked:
        still_in_it = (
            members.c.identifier == identifier,
            members.c.kind == kind,
            members.c.inbox_id == judged.inbox_id,
            members.c.revoked_sequence_id.is_(None),
        )
        connection.execute(
            update(members).where(*still_in_it).values(revoked_sequence_id=judged.sequence_id)
        )
    if judged.associated:
        rows = [_member_row(judged, kind, identifier) for kind, identifier in judged.associated]
        connection.execute(insert(members), rows)


def _member_row(judged: JudgedUpdate, kind: str, identifier: bytes) -> dict[str, object]:
    return {
        "originator_id": judged.originator_id,
        "associated_sequence_id": judged.sequence_id,
        "kind": kind,
        "identifier": identifier,
        "inbox_id": judged.inbox_id,
    }


def find_inboxes(
    connection: Connection, identifiers: Collection[Identifier]
) -> Mapping[Identifier, bytes]:
    """Return the inbox of each identifier that has one: of the highest association not revoked."""
    members = schema.inbox_members.c
    asked: Iterable[tuple[bytes, str]] = [(key, kind) for kind, key in identifiers]
    query = select(members.kind, members.identifier, members.inbox_id).where(
        tuple_(members.identifier, members.kind).in_(asked),
        members.revoked_sequence_id.is_(None),
    )
    ordered = query.order_by(members.associated_sequence_id)
    # The last of several counts.
    return {(row.kind, row.identifier): row.inbox_id for row in connection.execute(ordered)}
