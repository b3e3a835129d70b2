"""``index export``: a node's rows as Parquet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from chainkit.exports import table_of
from chainkit.terminal.bar import late_progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option, path_option
from chainkit_indexer.config import DEFAULT_RANGE_BLOCKS
from chainkit_indexer.export import Exported, write_export
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option


@click.command("export", cls=CompleteCommand)
@database_option
@path_option(
    "--out",
    "directory",
    "DIR",
    "Folder of this node's exports; made where there is none, and added to where there is.",
    required=True,
)
@click.option(
    "--range-blocks",
    type=click.IntRange(min=1),
    help="Blocks per file; the same for all exports to a folder. [default: what the folder was "
    f"made with, or {DEFAULT_RANGE_BLOCKS}]",
)
@click.option(
    "--check",
    "check_digests",
    is_flag=True,
    help="Read the finished files again and compare their digests, not only their sizes.",
)
@json_option
def export_command(
    database: str, directory: Path, range_blocks: int | None, check_digests: bool, as_json: bool
) -> None:
    """Write envelopes, quarantine, journal and registry as Parquet, pinned to the cursor's block.

    Files of ranges that are final are written once, and are the same bytes whoever exports them
    with the same key; what may still change is written anew each time. Only what manifest.json
    lists is the export. It needs no key and may run beside the indexer.

    \b
    Example:
      chainkit index export --database node.db --out exports/node-100
    """
    with existing(database) as store, late_progress_bar("exporting") as progress:
        exported = write_export(store, directory, range_blocks, check_digests, progress)
    if as_json:
        echo_json(_as_json(exported))
        return
    manifest = exported.manifest
    written = len(manifest.files) - len(exported.kept)
    click.echo(f"exported up to block {manifest.to_block} {manifest.to_block_hash}")
    click.echo(f"  {written} files written, {len(exported.kept)} of finished ranges kept")
    for table, rows in sorted(_rows_of_tables(exported).items()):
        click.echo(f"  {table:<17} {rows} rows")


def _rows_of_tables(exported: Exported) -> Counter[str]:
    rows: Counter[str] = Counter()
    for name, about in exported.manifest.files.items():
        rows[table_of(name)] += about["rows"]
    return rows


def _as_json(exported: Exported) -> dict[str, Any]:
    manifest = exported.manifest
    content = {name: getattr(manifest, name) for name in type(manifest).__slots__}
    return content | {"kept": list(exported.kept), "rows": dict(_rows_of_tables(exported))}
