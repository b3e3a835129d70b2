"""``chainkit audit export-node``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from chainkit.exports import Manifest
from chainkit.nodes.trust import peer_ca_option
from chainkit.terminal.bar import late_progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_recorded_chain
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    json_option,
    path_option,
    rpc_option,
)
from chainkit.text.counting import counted
from chainkit_jobs.node_export.api import MOST_PAGE_ROWS, NodeApi
from chainkit_jobs.node_export.export import Exported, export_node
from chainkit_jobs.node_export.pinning import Chain


@click.command("export-node", cls=CompleteCommand)
@click.argument("url", metavar="URL")
@rpc_option
@deployment_option
@path_option(
    "--out",
    "directory",
    "DIR",
    "Folder of this node's answers; made where there is none, and added to where there is.",
    required=True,
)
@click.option(
    "--page-rows",
    type=click.IntRange(1, MOST_PAGE_ROWS),
    default=MOST_PAGE_ROWS,
    show_default=True,
    metavar="N",
    help="Envelopes to ask for at once; fewer where the node refuses so many.",
)
@peer_ca_option
@json_option
def export_node_command(
    url: str,
    rpc_url: str,
    deployment_path: Path,
    directory: Path,
    page_rows: int,
    as_json: bool,
) -> None:
    """Write what a node answers over its public API to Parquet, to audit it.

    The node is asked for all envelopes of the chain, one page after the other, as any reader may
    ask it. Where it is busy it is asked again, later. Its answers are kept as they
    came: `chainkit audit reconcile` takes the folder like an operator's export, with a chain export
    that is made afterwards. A killed export goes on behind its last part when it is called again.

    \b
    Example:
      chainkit audit export-node https://node.example --rpc http://127.0.0.1:8545 \\
        --deployment record.json --out node-a/
    """
    endpoint, record, _ = open_recorded_chain(rpc_url, deployment_path)
    with (
        NodeApi.connect(url, page_rows) as api,
        late_progress_bar("sequences") as progress,
    ):
        exported = export_node(
            api,
            Chain(endpoint, record),
            directory,
            lambda cursor, counter: _show(progress, cursor, counter),
        )
    if as_json:
        echo_json(_as_json(exported))
        return
    manifest = exported.manifest
    news = counted(exported.new_envelopes, "new envelope") if exported.new_envelopes else "no news"
    end = f"block {manifest.to_block} {manifest.to_block_hash}"
    last = ", ".join(map(str, manifest.answers.values()))
    click.echo(f"{directory}: {news}; up to sequence {last}, asked at {end}")
    if manifest.node_public_key is None:
        click.echo("no key signed most of them: name the node (reconcile --node ID=DIR)", err=True)


def _show(progress: Callable[[int, int], None], cursor: int, counter: int | None) -> None:
    # Where no contract counts, the end of the progress is not known.
    if counter is not None:
        progress(min(cursor, counter), counter)


def _answered(manifest: Manifest) -> dict[str, Any]:
    if manifest.answered is None:
        return {"answered_to": manifest.answered_to}
    return {"answered": dict(manifest.answered)}


def _as_json(exported: Exported) -> dict[str, Any]:
    manifest = exported.manifest
    return {
        **_answered(manifest),
        "envelopes": sum(about["rows"] for about in manifest.files.values()),
        "new_envelopes": exported.new_envelopes,
        "node_public_key": manifest.node_public_key,
        "to_block": manifest.to_block,
        "to_block_hash": manifest.to_block_hash,
    }
