"""Writes a history file: what this installation read, and what other devices gave it (H12)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from sqlalchemy import ColumnElement, Connection, Select, Table, func, or_, select

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError
from chainkit.identity.writing import InstallationSigner
from chainkit.types import Place
from chainkit_client.groups.overview import read_shown_groups
from chainkit_client.groups.payload import group_topic
from chainkit_client.groups.transcript import imported_message, stored_message
from chainkit_client.history.packing import pack
from chainkit_client.history.rows import (
    MOST_SKIPPED,
    SIGNED_WITH,
    EndLine,
    GroupLine,
    Header,
    MessageLine,
    envelope_digest,
)
from chainkit_client.mls.engine import Installation
from chainkit_client.storage import imported, payloads, schema
from chainkit_client.storage.evidence import OWN_ROWS
from chainkit_client.storage.imported_schema import imported_messages
from chainkit_client.storage.own import read_installation
from chainkit_client.storage.schema import DeliveryStatus
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store
from chainkit_client.storage.sync_groups import SYNC_GROUP_IDS

_OWN: Final = schema.group_messages
_IMPORTED: Final = imported_messages
_PAGE: Final = 500
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Saved:
    """A history file that was written."""

    groups: int
    messages: int
    length: int
    """Bytes."""


def save(store: Store, path: Path, recipient: str, since_ns: int = 0) -> Saved:
    """Write the published messages of all groups to a file that the recipient's key opens.

    ``since_ns`` leaves out what originators dated before it, in nanoseconds since 1970. The file
    appears whole or not at all, and nothing is ever on the disk in the clear. Raises StoreError,
    and ConfigurationError where the file cannot be written.
    """
    try:
        with moved_into_place(path) as partial:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
            with os.fdopen(descriptor, "wb") as file:
                saved = write(store, file, recipient, since_ns)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise ConfigurationError(f"file {path}", "a file that can be written", got) from error
    return saved


def write(
    store: Store,
    file: BinaryIO,
    recipient: str,
    since_ns: int = 0,
    maker: Installation | None = None,
) -> Saved:
    """Write to an open file, as ``save``; ``maker`` signs it, or the database's installation.

    Raises StoreError, OSError, and MalformedData.
    """
    with store.reading() as connection:
        made_by = maker or read_installation(connection, store.seal)
        lines = _Lines(connection, store.seal, since_ns, made_by)
        pack(lines.all(), file, recipient)
    return Saved(lines.header.groups, lines.header.messages, file.tell())


class _Lines:
    """The lines of one state of a database."""

    def __init__(
        self, connection: Connection, seal: Seal, since_ns: int, installation: Installation
    ) -> None:
        self._connection = connection
        self._seal = seal
        self._since_ns = since_ns
        self._installation = installation
        self._groups = self._read_groups()
        self.header = Header(
            bytes.fromhex(self._installation.credential.decode()),
            self._installation.public_key,
            time.time_ns(),
            len(self._groups),
            self._count(_OWN, self._is_own) + self._count(_IMPORTED, self._is_imported),
        )

    def all(self) -> Iterator[bytes]:
        """Yield all lines."""
        digest = hashlib.sha256()
        for line in self._signed():
            digest.update(line + b"\n")
            yield line
        signer = InstallationSigner(self._installation.secret)
        yield EndLine(signer.signature(digest.digest(), SIGNED_WITH)).line()

    def _signed(self) -> Iterator[bytes]:
        yield self.header.line()
        for group in self._groups:
            yield group.line()
        for row in self._rows(OWN_ROWS.where(self._is_own)):
            message, envelope = stored_message(row, self._seal), row["envelope"]
            if envelope is None:
                yield MessageLine(replace(message, place=None), None).line()
            else:
                yield MessageLine(message, envelope_digest(envelope)).line()
        for row in self._rows(imported.IMPORTED_ROWS.where(self._is_imported)):
            message = imported_message(row, self._seal)
            unknown = imported.opened_fields(self._seal, row["id"], row["unknown_fields"])
            yield MessageLine(message, row["digest"], unknown).line()

    @property
    def _is_own(self) -> ColumnElement[bool]:
        is_published = _OWN.c.delivery_status == DeliveryStatus.PUBLISHED.value
        is_shown = _OWN.c.group_id.not_in(SYNC_GROUP_IDS)
        return is_published & is_shown & self._is_later(_OWN)

    @property
    def _is_imported(self) -> ColumnElement[bool]:
        return self._is_later(_IMPORTED) & _IMPORTED.c.id.not_in(select(_OWN.c.id))

    def _is_later(self, table: Table) -> ColumnElement[bool]:
        # Changes of members have no such time: later messages need all of them.
        time_ns = table.c.originator_ns
        return or_(time_ns.is_(None), time_ns >= self._since_ns)

    def _count(self, table: Table, condition: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(table).where(condition)
        return self._connection.scalar(query) or 0

    def _rows(self, query: Any) -> Iterator[Any]:
        """Yield rows as they are read, so that memory holds few of them."""
        result = self._connection.execute(query.execution_options(yield_per=_PAGE))
        yield from result.mappings()

    def _read_groups(self) -> list[GroupLine]:
        own = [
            GroupLine(
                group.id,
                max(group.created_at_ns, self._since_ns),
                payloads.read_cursor(self._connection, group_topic(group.id)),
                self._skipped(group.id),
            )
            for group in read_shown_groups(self._connection)
        ]
        others = [
            GroupLine(each.group_id, max(each.since_ns, self._since_ns), each.read, each.skipped)
            for each in imported.read_groups(self._connection)
        ]
        return own + others

    def _skipped(self, group_id: bytes) -> list[Place]:
        """Return the places that were read and have no message: copies, and what nobody reads."""
        results = schema.payload_results
        read = _places(results, results.c.topic == group_topic(group_id))
        skipped = read.except_(_places(_OWN, _OWN.c.group_id == group_id)).subquery()
        last = select(skipped).order_by(
            skipped.c.originator_id.desc(), skipped.c.sequence_id.desc()
        )
        found = self._connection.execute(last.limit(MOST_SKIPPED))
        return sorted((row[0], row[1]) for row in found)


def _places(table: Table, condition: ColumnElement[bool]) -> Select[tuple[Any, Any]]:
    return select(table.c.originator_id, table.c.sequence_id).where(condition)
