"""``index quarantine``: payloads that are never served. Strangers chose these bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from chainkit.terminal.command import CompleteGroup
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit_indexer.cli.inspect import originator_option
from chainkit_indexer.cli.lines import cut
from chainkit_indexer.inspection.quarantine import (
    Quarantined,
    find_quarantined,
    list_quarantine,
    preview,
)
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option

_LISTED_BYTES: Final = 24
_SHOWN_BYTES: Final = 1024


@click.group("quarantine", cls=CompleteGroup)
def quarantine_group() -> None:
    """Show payloads that were posted but are never served, with the reason.

    \b
    Example:
      chainkit index quarantine list --database node.db
    """


@quarantine_group.command("list")
@database_option
@click.option("--reason", help="Only those whose reason begins like this.")
@click.option("--from-block", type=click.IntRange(min=0), default=0, help="Only from here on.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Most to list."
)
@json_option
def list_command(
    database: str, reason: str | None, from_block: int, limit: int, as_json: bool
) -> None:
    """List quarantined payloads with the place they were posted at, the lowest sequence id first.

    The first bytes of a payload are shown; `show` has more, and --out all of them.

    \b
    Example:
      chainkit index quarantine list --database node.db --reason "not a ClientEnvelope"
    """
    with existing(database) as store:
        # One row more than shown, to see whether there are more.
        found = list_quarantine(store, reason, from_block, limit + 1)
    listed = found[:limit]
    if as_json:
        rows = [_as_json(each) for each in listed]
        echo_json({"quarantined": rows, "more": len(found) > limit})
        return
    places = [f"block {each.block_number}, log {each.log_index}" for each in listed]
    width = max(map(len, places), default=0)
    for each, place in zip(listed, places, strict=True):
        about = f"{len(each.payload):>6} bytes  {each.reason}"
        payload = preview(each.payload, _LISTED_BYTES)
        click.echo(cut(f"{each.sequence_id:>8}  {place:<{width}}  {about}  {payload}".rstrip()))
    if len(found) > limit:
        click.echo(f"… and more: see --limit and --from-block {listed[-1].block_number}")
    elif not listed:
        asked = "" if reason is None and not from_block else " that was asked for"
        click.echo(f"nothing in quarantine{asked}")


@quarantine_group.command("show")
@click.argument("sequence_id", type=click.IntRange(min=0), metavar="SEQUENCE")
@originator_option
@database_option
@click.option(
    "--out",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the payload's bytes to a new file.",
)
@json_option
def show_command(
    sequence_id: int, originator_id: int, database: str, path: Path | None, as_json: bool
) -> int:
    """Show one quarantined payload; ends with 1 where none has this sequence id.

    \b
    Example:
      chainkit index quarantine show 42 --database node.db --out payload.bin
    """
    with existing(database) as store:
        found = find_quarantined(store, originator_id, sequence_id)
    if path is not None and found is not None:
        with path.open("xb") as file:
            file.write(found.payload)
    if as_json:
        payload = {"payload": hex0x(found.payload)} if found else {}
        echo_json({"quarantined": found and _as_json(found) | payload})
    elif found is None:
        click.echo(f"nothing in quarantine under {sequence_id} of originator {originator_id}")
    else:
        for name, value in _as_json(found).items():
            click.echo(f"{name:<17} {value}")
        click.echo(f"{'payload':<17} {preview(found.payload, _SHOWN_BYTES)}")
    return 0 if found else 1


def _as_json(found: Quarantined) -> dict[str, Any]:
    return {
        "originator_id": found.originator_id,
        "sequence_id": found.sequence_id,
        "reason": found.reason,
        "block_number": found.block_number,
        "block_hash": hex0x(found.block_hash),
        "transaction_hash": hex0x(found.transaction_hash),
        "log_index": found.log_index,
        "contract": hex0x(found.contract),
        "identifier": hex0x(found.identifier),
        "payload_bytes": len(found.payload),
    }
