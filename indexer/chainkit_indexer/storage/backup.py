"""Copies SQLite's database with the content of its log: a copy of the file alone may be empty.

After ``kill -9``, and while an indexer runs, the newest transactions are in ``<file>-wal``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from chainkit.documents.files import moved_into_place
from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports import flush
from chainkit.sqlite import connect
from chainkit_indexer.storage.location import parse_location

_PAGES_AT_ONCE: Final = 1024

Report = Callable[[int, int], None]
"""Takes how many pages are copied, and how many there are."""


def file_to_copy(location: str) -> Path:
    """Return SQLite's file. Raises ConfigurationError, with the way to go, for PostgreSQL."""
    found = parse_location(location)
    if isinstance(found, URL):
        hint = "pg_dump makes a copy of it, and pg_restore takes it back"
        raise ConfigurationError("database", "a file of SQLite", "a PostgreSQL database", hint)
    return found


def copy_database(source: Path, target: Path, report: Report = lambda done, pages: None) -> None:
    """Copy a database to a file that does not exist yet, as one state, also beside a writer.

    The copy appears once it is whole on the disk. Raises StoreError where there is no database,
    where ``target`` or a log of it is there already, or where the copy is not sound.
    """
    subject = f"database {target}"
    for taken in (target, *(target.with_name(target.name + end) for end in ("-wal", "-shm"))):
        if os.path.lexists(taken):
            # SQLite would take the log of another database for this one's.
            raise StoreError(f"file {taken}", None, "already exists")
    if not target.parent.is_dir():
        raise StoreError(subject, "a folder that exists", f"no folder {target.parent}")
    if not source.is_file():
        raise StoreError(f"database {source}", "a file that exists", "none")
    try:
        with moved_into_place(target) as partial:
            _copy(source, partial, report)
            flush(partial)
        flush(target.parent)
    except sqlite3.Error as error:
        expected = "a database that can be read"
        raise StoreError(f"database {source}", expected, error) from error
    except OSError as error:
        raise StoreError(subject, "a folder that takes new files", error.strerror) from error


def _copy(source: Path, target: Path, report: Report) -> None:
    with closing(connect(source, "ro")) as original, closing(connect(target, "rwc")) as copy:
        # Within one transaction: else the copy would begin anew with each commit of a writer.
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        original.backup(
            copy,
            pages=_PAGES_AT_ONCE,
            progress=lambda status, left, pages: report(pages - left, pages),
        )
        [(verdict,), *_] = copy.execute("PRAGMA integrity_check(1)").fetchall()
        if verdict != "ok":
            raise StoreError(f"database {source}", "a sound database", verdict)
        # A copy is one file: no process uses it yet, so its log is emptied and removed.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
