"""Reads a history file into the database: all of it or nothing, in one transaction (H7, H29)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from sqlalchemy import Connection, select

from chainkit.errors import MalformedData
from chainkit.identity.curves import check_ed25519ph
from chainkit_client.groups.transcript import (
    Message,
    imported_message,
    message_tag,
    sealed_message,
    stored_message,
)
from chainkit_client.history.packing import MOST_BYTES, unpack
from chainkit_client.history.rows import (
    SIGNED_WITH,
    EndLine,
    GroupLine,
    Header,
    MessageLine,
    parse_history_header,
    parse_history_line,
)
from chainkit_client.storage import imported, schema
from chainkit_client.storage.imported import ImportedFile, ImportedGroup
from chainkit_client.storage.imported_schema import imported_messages
from chainkit_client.storage.sealing import Seal
from chainkit_client.storage.store import Store

_PAGE: Final = 500
_SUBJECT: Final = "history file"


@dataclass(slots=True)
class Loaded:
    """The outcome of an import."""

    installation: bytes
    """32 bytes: the device that made the file."""
    created_ns: int
    """Nanoseconds since 1970, by that device's clock."""
    new: int = 0
    known: int = 0
    """Messages that were in the database, or twice in the file."""
    disputed: int = 0
    """Those of them that another device told differently, such as with another sender."""


class _Done(Exception):
    """The same lines were imported before: nothing is stored twice."""


def load(
    store: Store,
    file: BinaryIO,
    key: str,
    inbox_id: bytes,
    installations: Collection[bytes],
    most_bytes: int = MOST_BYTES,
    finish: Callable[[Connection], None] = lambda _: None,
) -> Loaded:
    """Import a file that one of the ``installations`` of the own inbox made.

    ``finish`` writes in the import's transaction, once all of the file was read.

    The file is read once, and nothing of it is kept unless its last line is the signature of its
    maker over all others. Raises as ``packing.unpack``, MalformedData for another inbox's file, one
    of an unlisted installation, and for lines that break a rule; and StoreError.
    """
    try:
        with store.writing() as connection:
            reader = _Reader(connection, store.seal, inbox_id, installations)
            unpack(file, key, reader.take, most_bytes)
            reader.end()
            finish(connection)
    except _Done:
        with store.writing() as connection:
            finish(connection)
        reader.loaded.known += reader.loaded.new
        reader.loaded.new = reader.loaded.disputed = 0
    # The log grew with the file.
    store.forget_deleted()
    return reader.loaded


class _Reader:
    """Takes the lines of a file within one transaction."""

    loaded: Loaded

    def __init__(
        self, connection: Connection, seal: Seal, inbox_id: bytes, installations: Collection[bytes]
    ) -> None:
        self._connection = connection
        self._seal = seal
        self._inbox_id = inbox_id
        self._installations = installations
        self._header: Header | None = None
        self._file_id = 0
        self._digest = hashlib.sha256()
        self._groups = 0
        self._messages = 0
        self._page: dict[bytes, MessageLine] = {}
        self._is_ended = False

    def take(self, line: bytes) -> None:
        """Take the next line."""
        if self._is_ended:
            raise MalformedData(_SUBJECT, "nothing behind its signature", "another line")
        if self._header is None:
            self._begin(parse_history_header(line))
        else:
            parsed = parse_history_line(line, self._header.installation)
            if isinstance(parsed, EndLine):
                self._check_signature(parsed, self._header)
                return
            self._keep(parsed)
        self._digest.update(line + b"\n")

    def end(self) -> None:
        """Finish the import. Raises MalformedData where lines are missing."""
        if not self._is_ended or self._header is None:
            raise MalformedData(_SUBJECT, "a signature as its last line", "none")
        self._store_page()
        expected = self._header.groups, self._header.messages
        if (self._groups, self._messages) != expected:
            wanted = f"{expected[0]} groups and {expected[1]} messages"
            raise MalformedData(_SUBJECT, wanted, f"{self._groups} and {self._messages}")
        digest = self._digest.digest()
        if imported.is_imported(self._connection, digest):
            raise _Done
        imported.finish_file(self._connection, self._file_id, digest)

    def _begin(self, header: Header) -> None:
        if header.inbox_id != self._inbox_id:
            got = f"one of inbox {header.inbox_id.hex()}"
            raise MalformedData(_SUBJECT, f"a file of inbox {self._inbox_id.hex()}", got)
        if header.installation not in self._installations:
            got = f"another: {header.installation.hex()}"
            raise MalformedData(_SUBJECT, "a file of a device that is in the inbox now", got)
        self._header = header
        self.loaded = Loaded(header.installation, header.created_ns)
        file = ImportedFile(header.installation, header.created_ns, time.time_ns())
        self._file_id = imported.insert_file(self._connection, file)

    def _check_signature(self, end: EndLine, header: Header) -> None:
        check_ed25519ph(header.installation, end.signature, self._digest.digest(), SIGNED_WITH)
        self._is_ended = True

    def _keep(self, parsed: GroupLine | MessageLine | None) -> None:
        if isinstance(parsed, GroupLine):
            self._groups += 1
            group = ImportedGroup(parsed.group_id, parsed.since_ns, parsed.read, parsed.skipped)
            imported.insert_group(self._connection, self._file_id, group)
        elif parsed is not None:
            self._messages += 1
            tag = message_tag(self._seal, parsed.message.id)
            if tag in self._page or len(self._page) == _PAGE:
                self._store_page()
            self._page[tag] = parsed

    def _store_page(self) -> None:
        """Store the messages that are new; a row that is there stands, whatever a device says."""
        page, self._page = self._page, {}
        known = self._read_known(page)
        rows = [self._row(tag, each) for tag, each in page.items() if tag not in known]
        imported.insert_messages(self._connection, rows)
        disputed = [tag for tag, other in known.items() if _told(page[tag].message) != _told(other)]
        imported.dispute(self._connection, disputed)
        self.loaded.new += len(rows)
        self.loaded.known += len(known)
        self.loaded.disputed += len(disputed)

    def _read_known(self, tags: Collection[bytes]) -> dict[bytes, Message]:
        """Return the stored messages of some tags; the own row where there are two."""
        other = imported.IMPORTED_ROWS.where(imported_messages.c.id.in_(tags))
        rows = self._connection.execute(other).mappings()
        found = {row["id"]: imported_message(row, self._seal) for row in rows}
        own = select(schema.group_messages).where(schema.group_messages.c.id.in_(tags))
        rows = self._connection.execute(own).mappings()
        return found | {row["id"]: stored_message(row, self._seal) for row in rows}

    def _row(self, tag: bytes, line: MessageLine) -> Mapping[str, Any]:
        message = line.message
        originator_id, sequence_id = message.place or (None, None)
        return {
            "id": tag,
            "file_id": self._file_id,
            "group_id": message.group_id,
            "sealed_message": sealed_message(self._seal, message),
            "epoch": message.epoch,
            "originator_id": originator_id,
            "sequence_id": sequence_id,
            "originator_ns": message.originator_ns,
            "expires_at": message.expires_at,
            "warning": message.warning,
            "digest": line.digest,
            "unknown_fields": imported.sealed_fields(self._seal, tag, line.unknown),
        }


def _told(message: Message) -> tuple[object, ...]:
    """Return what all devices tell alike of a message; its id is a hash of the rest."""
    return message.kind, message.sender, message.sender_account
