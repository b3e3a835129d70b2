"""History files that were imported, and what their devices say that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from chainkit.documents.fields import parse_json
from chainkit.types import Place
from chainkit_client.storage.imported_schema import (
    Standing,
    imported_files,
    imported_groups,
    imported_messages,
)
from chainkit_client.storage.sealing import Seal

_FIELDS: Final = "imported_messages.unknown_fields"
_SUBJECT: Final = "imported groups"

IMPORTED_ROWS: Final = select(imported_messages, imported_files.c.installation).join(imported_files)
"""The imported messages, each with the installation of its file."""


@dataclass(frozen=True, slots=True)
class ImportedGroup:
    """How far a device says that it read a group."""

    group_id: bytes
    since_ns: int
    """Nanoseconds since 1970: when the device joined, or the beginning of the chosen time."""
    read: Mapping[int, int]
    """The highest id that was read of each originator."""
    skipped: Sequence[Place]
    """Places that were read and have no message."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that was imported."""

    installation: bytes
    """32 bytes: the device that made the file."""
    created_ns: int
    imported_ns: int


def insert_file(connection: Connection, file: ImportedFile) -> int:
    """Store a file, and return its id."""
    row = {
        "installation": file.installation,
        "created_ns": file.created_ns,
        "imported_ns": file.imported_ns,
    }
    inserted = connection.execute(insert(imported_files).values(row)).inserted_primary_key
    assert inserted is not None
    found: int = inserted[0]
    return found


def is_imported(connection: Connection, digest: bytes) -> bool:
    """Return whether a file with these lines was imported."""
    query = select(imported_files.c.id).where(imported_files.c.digest == digest)
    return connection.scalar(query) is not None


def finish_file(connection: Connection, file_id: int, digest: bytes) -> None:
    """Store the digest of a file that was read to its end."""
    statement = update(imported_files).where(imported_files.c.id == file_id)
    connection.execute(statement.values(digest=digest))


def insert_group(connection: Connection, file_id: int, group: ImportedGroup) -> None:
    """Store what a device says that it read of a group."""
    row = {
        "file_id": file_id,
        "group_id": group.group_id,
        "since_ns": group.since_ns,
        "read_ids": json.dumps({str(key): value for key, value in group.read.items()}),
        "skipped": json.dumps([list(each) for each in group.skipped]),
    }
    connection.execute(insert(imported_groups).values(row))


def read_groups(connection: Connection) -> list[ImportedGroup]:
    """Return what devices say that they read, in the order of the import."""
    rows = connection.execute(select(imported_groups).order_by(imported_groups.c.id)).mappings()
    return [
        ImportedGroup(
            row["group_id"],
            row["since_ns"],
            {
                int(key): value
                for key, value in parse_json(_bytes(row, "read_ids"), _SUBJECT).items()
            },
            [(each[0], each[1]) for each in parse_json(_bytes(row, "skipped"), _SUBJECT)],
        )
        for row in rows
    ]


def insert_messages(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Store rows of ``imported_messages``."""
    given = list(rows)
    if given:
        connection.execute(insert(imported_messages), given)


def dispute(connection: Connection, tags: Sequence[bytes]) -> None:
    """Store that devices tell some imported messages differently."""
    is_it = imported_messages.c.id.in_(tags)
    standing = Standing.DISPUTED.value
    connection.execute(update(imported_messages).where(is_it).values(standing=standing))


def write_standings(connection: Connection, standings: Mapping[bytes, Standing | None]) -> None:
    """Store how rows compare, by their tags."""
    rows = [
        {"tag": tag, "new": None if each is None else each.value} for tag, each in standings.items()
    ]
    if rows:
        is_it = imported_messages.c.id == bindparam("tag")
        statement = update(imported_messages).where(is_it).values(standing=bindparam("new"))
        connection.execute(statement, rows)


def sealed_fields(seal: Seal, tag: bytes, fields: Mapping[str, Any]) -> bytes | None:
    """Seal the fields of a later version for the row of a message; None for no fields."""
    return seal.sealed(json.dumps(fields).encode(), _FIELDS, tag) if fields else None


def opened_fields(seal: Seal, tag: bytes, sealed: bytes | None) -> Mapping[str, Any]:
    """Return the fields of a later version."""
    if sealed is None:
        return {}
    found: Mapping[str, Any] = parse_json(seal.opened(sealed, _FIELDS, tag), _SUBJECT)
    return found


def _bytes(row: Any, name: str) -> bytes:
    text: str = row[name]
    return text.encode()
