"""``node refused``: identity updates that break a rule, and are not on their topics."""

from __future__ import annotations

import click
from sqlalchemy import select

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_indexer.storage import schema

_COLUMNS = tuple(schema.refused_updates.c)


@click.command("refused", cls=CompleteCommand)
@database_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Most updates to list.",
)
@json_option
def refused_command(database: str, limit: int, as_json: bool) -> None:
    """List identity updates that were refused, the newest first, each with the rule it breaks.

    They stand in the order of their originator, and not on the topics of their inboxes.

    \b
    Example:
      chainkit node refused --database node.db
    """
    newest = select(*_COLUMNS).order_by(*(column.desc() for column in _COLUMNS[:2])).limit(limit)
    with existing(database) as store, store.reading() as connection:
        rows = [dict(row) for row in connection.execute(newest).mappings()]
    for row in rows:
        row["inbox_id"] = row["inbox_id"].hex()
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        place = f"{row['sequence_id']} of originator {row['originator_id']}"
        click.echo(f"{place}, inbox {row['inbox_id']}: {row['reason']}")
    if not rows:
        click.echo("nothing was refused")
