"""``index backup`` and ``index restore``: a copy of the database, and the way back."""

from __future__ import annotations

from pathlib import Path

import click

from chainkit.terminal.bar import late_progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.json_values import reference_as_json
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage.backup import copy_database, file_to_copy


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
    log beside the file while the indexer runs, and after `kill -9`. For PostgreSQL, use pg_dump.

    \b
    Example:
      chainkit index backup --database node.db --out before-upgrade.db
    """
    source = file_to_copy(database)
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
    indexer continues at the backup's cursor.

    \b
    Example:
      chainkit index restore before-upgrade.db --database node.db
    """
    target = file_to_copy(database)
    # A file of something else is refused before anything is written.
    with existing(str(backup)), late_progress_bar("restoring") as progress:
        copy_database(backup, target, progress)
    _echo(target, as_json)


def _echo(target: Path, as_json: bool) -> None:
    with existing(str(target)) as store:
        position = store.position()
    cursor = None if position is None else position.header.reference
    size = target.stat().st_size
    if as_json:
        found = None if cursor is None else reference_as_json(cursor)
        echo_json({"file": str(target), "bytes": size, "cursor": found})
        return
    click.echo(f"{target}: {size} bytes, cursor {'none' if cursor is None else f'block {cursor}'}")
