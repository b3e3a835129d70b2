"""The address log: which inbox a wallet or a passkey belongs to (XIP-46; GetInboxIds of XIP-49).

A row is one time that an identifier belonged to an inbox. Rows are added, closed and never reused,
so whatever stands after a sequence id can be taken back when a reorg takes its block back. This one
is held in memory; a database holds the same rows, and answers by the same rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from chainkit.errors import MalformedData
from chainkit.identity.identifiers import (
    MemberIdentifier,
    MemberKind,
    passkey_from_hex,
    wallet,
)
from chainkit.identity.state import Changes

MAXIMUM_LOOKUPS: Final = 1000
"""Identifiers that one call may ask for."""

_READERS: Final = {MemberKind.ETHEREUM: wallet, MemberKind.PASSKEY: passkey_from_hex}


@dataclass(frozen=True, slots=True)
class AddressRow:
    """One time that an identifier belonged to an inbox."""

    identifier: MemberIdentifier
    """A wallet or a passkey."""
    inbox_id: bytes
    """32 bytes."""
    association_sequence_id: int
    """The update that added it."""
    revocation_sequence_id: int | None = None
    """A later update, which revoked it; None while it belongs to the inbox."""


class AddressLog:
    """The rows of all inboxes, in memory.

    Updates of different inboxes come in any order, those of one inbox in theirs. For an identifier
    in an inbox sequence ids only go up: a change that is not higher than the last changes nothing,
    so the same update may be recorded again.
    """

    def __init__(self) -> None:
        """Begin without rows."""
        self._rows: defaultdict[MemberIdentifier, dict[bytes, list[AddressRow]]]
        self._rows = defaultdict(dict)

    def rows(self) -> Iterator[AddressRow]:
        """Yield all rows, those of an identifier in an inbox by ascending sequence ids."""
        for inboxes in self._rows.values():
            for rows in inboxes.values():
                yield from rows

    def record(self, inbox_id: bytes, sequence_id: int, changes: Changes) -> None:
        """Note what an accepted update changes. ``inbox_id`` has 32 bytes."""
        for identifier in changes.associated:
            rows = self._rows[identifier].setdefault(inbox_id, [])
            if not rows or (not _is_open(rows[-1]) and _highest(rows[-1]) < sequence_id):
                rows.append(AddressRow(identifier, inbox_id, sequence_id))
        for identifier in changes.revoked:
            rows = self._rows[identifier].get(inbox_id, [])
            if rows and _is_open(rows[-1]) and _highest(rows[-1]) < sequence_id:
                rows[-1] = replace(rows[-1], revocation_sequence_id=sequence_id)

    def take_back(self, sequence_id: int) -> None:
        """Forget all updates after a sequence id: a reorg took their blocks back."""
        for inboxes in self._rows.values():
            for inbox_id, rows in inboxes.items():
                kept = (row for row in rows if row.association_sequence_id <= sequence_id)
                inboxes[inbox_id] = [_reopened(row, sequence_id) for row in kept]

    def look_up(self, asked: Sequence[tuple[str, MemberKind]]) -> list[bytes | None]:
        """Return the inbox of each identifier, as text in any case, in the order that was asked.

        It is that of the highest association that is not revoked; None where there is none, or
        where the text is no identifier. Raises MalformedData for more than MAXIMUM_LOOKUPS.
        """
        if len(asked) > MAXIMUM_LOOKUPS:
            raise MalformedData("look-up", f"up to {MAXIMUM_LOOKUPS} identifiers", len(asked))
        found = {each: self._inbox_of(*each) for each in set(asked)}
        return [found[each] for each in asked]

    def _inbox_of(self, text: str, kind: MemberKind) -> bytes | None:
        identifier = parse_lookup(text, kind)
        inboxes = self._rows.get(identifier, {}) if identifier else {}
        return highest_open(row for rows in inboxes.values() for row in rows[-1:])


def parse_lookup(text: str, kind: MemberKind) -> MemberIdentifier | None:
    """Return the identifier that somebody asks for, in any case; None where the text is none."""
    reader = _READERS.get(kind)
    try:
        return reader(text.lower()) if reader else None
    except MalformedData:
        return None


def highest_open(rows: Iterable[AddressRow]) -> bytes | None:
    """Return the inbox of an identifier's highest association that is not revoked, by its rows."""
    found = [row for row in rows if _is_open(row)]
    highest = max(found, key=lambda row: row.association_sequence_id, default=None)
    return highest.inbox_id if highest else None


def _is_open(row: AddressRow) -> bool:
    return row.revocation_sequence_id is None


def _highest(row: AddressRow) -> int:
    return row.revocation_sequence_id or row.association_sequence_id


def _reopened(row: AddressRow, sequence_id: int) -> AddressRow:
    is_later = row.revocation_sequence_id is not None and row.revocation_sequence_id > sequence_id
    return replace(row, revocation_sequence_id=None) if is_later else row
