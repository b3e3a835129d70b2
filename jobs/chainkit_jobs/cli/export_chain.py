"""``chainkit audit export-chain``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from chainkit.exports import count_rows
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_recorded_chain
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    height_option,
    json_option,
    path_option,
    rpc_option,
)
from chainkit_jobs.chain_export.export import Exported, export_chain, resolve_range
from chainkit_jobs.chain_export.limits import (
    DEFAULT_PARALLEL,
    DEFAULT_RANGE_BLOCKS,
    HIGHEST_PARALLEL,
)


@click.command("export-chain", cls=CompleteCommand)
@rpc_option
@deployment_option
@height_option("--from-block", "from_block", "First block [the deployment's].")
@height_option("--to-block", "to_block", "Last block [the head].")
@path_option(
    "--out",
    "directory",
    "DIR",
    "Folder of this chain's exports; made where there is none, and added to where there is.",
    required=True,
)
@click.option(
    "--range-blocks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Blocks per file; the same for all exports to a folder. [default: what the folder was "
    f"made with, or {DEFAULT_RANGE_BLOCKS}]",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, HIGHEST_PARALLEL),
    default=DEFAULT_PARALLEL,
    show_default=True,
    metavar="N",
    help=f"Requests in flight, from 1 to {HIGHEST_PARALLEL}.",
)
@json_option
def export_chain_command(
    rpc_url: str,
    deployment_path: Path,
    from_block: int | None,
    to_block: int | None,
    directory: Path,
    range_blocks: int | None,
    parallel: int,
    as_json: bool,
) -> None:
    """Write headers, transactions, receipts and logs to Parquet, pinned to the last block.

    Ranges of blocks are written once, and are the same bytes for all who export the chain; the last
    one is written anew until it is full. A killed export goes on behind its last range when it is
    called again. Only what manifest.json lists is the export.

    \b
    Example:
      chainkit audit export-chain --rpc http://127.0.0.1:8545 --deployment record.json --out chain/
    """
    endpoint, record, head = open_recorded_chain(rpc_url, deployment_path)
    first, end = resolve_range(endpoint, record, head, from_block, to_block)
    with ExitStack() as stack:
        advance: list[Callable[[int], None]] = []

        def progress(more: int, blocks: int) -> None:
            if not advance:
                advance.append(stack.enter_context(progress_bar("blocks", blocks)))
            advance[0](more)

        exported = export_chain(
            endpoint,
            record,
            first,
            end,
            directory,
            range_blocks,
            parallel,
            progress,
            report=lambda sentence: click.echo(sentence, err=True),
        )
    if as_json:
        echo_json(_as_json(exported))
        return
    manifest = exported.manifest
    news = f"{exported.fetched_blocks} new blocks" if exported.fetched_blocks else "nothing new"
    counts = ", ".join(
        f"{count} {name}" for name, count in count_rows(manifest, CHAIN_TABLES).items()
    )
    click.echo(f"{directory}: {news}; {counts}, up to block {end}")


def _as_json(exported: Exported) -> dict[str, Any]:
    manifest = exported.manifest
    return {
        "from_block": manifest.from_block,
        "to_block": manifest.to_block,
        "to_block_hash": manifest.to_block_hash,
        "fetched_blocks": exported.fetched_blocks,
        "kept": list(exported.kept),
        "rows": count_rows(manifest, CHAIN_TABLES),
    }
