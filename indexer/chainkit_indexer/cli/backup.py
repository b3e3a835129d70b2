"""``index backup`` and ``index restore``: a copy of the database, and the way back."""

from __future__ import annotations

from pathlib import Path

import click

from chainkit.errors import StoreError
from chainkit.terminal.bar import late_progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.json_values import reference_as_json
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage.backup import copy_database, file_to_copy
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.migrate import REVISION, existing_revision


@click.command("backup", cls=CompleteCommand)
@database_option
@click.option(
    "--out",
    "out",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write; it must not exist.",
)
@json_option
def backup_command(database: str, out: Path, as_json: bool) -> None:
    """Copy the database to a new file; the indexer may run.

    The copy has all committed transactions. A copy by `cp` lacks the newest ones, which are in the
    log beside the file while the indexer runs, and after `kill -9`. A database of an older chainkit
    is copied as it is, and one of a newer chainkit is refused. For PostgreSQL, use pg_dump.

    \b
    Example:
      chainkit index backup --database node.db --out before-upgrade.db
    """
    source = file_to_copy(database)
    # Nothing is written where the copy could not be restored by this program.
    _revision(source)
    with late_progress_bar("copying") as progress:
        copy_database(source, out, progress)
    _echo(out, as_json)


@click.command("restore", cls=CompleteCommand)
@click.argument("backup", type=click.Path(path_type=Path))
@database_option
@json_option
def restore_command(backup: Path, database: str, as_json: bool) -> None:
    """Make a node's database of a backup.

    If there is a database, move it away first. The backup is checked, and is left as it is. The
    indexer continues at the backup's cursor. A backup that an older chainkit made is restored as it
    is: `chainkit index migrate` brings the restored database up to date, and the backup stays.

    \b
    Example:
      chainkit index restore before-upgrade.db --database node.db
    """
    target = file_to_copy(database)
    # A file of something else is refused before anything is written.
    _revision(backup)
    with late_progress_bar("restoring") as progress:
        copy_database(backup, target, progress)
    _echo(target, as_json)


def _revision(file: Path) -> str:
    """Return the revision of a database, older than this program's or the same.

    Raises StoreError for another file, and for a database of a newer chainkit.
    """
    if not file.is_file():
        raise StoreError(f"database {file}", "a file that exists", "none")
    database = Database(str(file), read_only=True)
    try:
        return existing_revision(database)
    finally:
        database.close()


def _echo(target: Path, as_json: bool) -> None:
    size, revision = target.stat().st_size, _revision(target)
    cursor = None
    # Only the tables of this program's revision are read: an old copy stays unchanged.
    if revision == REVISION:
        with existing(str(target)) as store:
            position = store.position()
        cursor = None if position is None else position.header.reference
    if as_json:
        found = None if cursor is None else reference_as_json(cursor)
        echo_json({"file": str(target), "bytes": size, "revision": revision, "cursor": found})
    elif revision != REVISION:
        click.echo(f"{target}: {size} bytes, revision {revision}, older than {REVISION}")
    else:
        where = "none" if cursor is None else f"block {cursor}"
        click.echo(f"{target}: {size} bytes, cursor {where}")
