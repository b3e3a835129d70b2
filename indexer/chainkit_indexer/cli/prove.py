"""``index prove``: prove what was stored without a proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from chainkit.contracts.followed import read_followed_deployment
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import deployment_option, echo_json, endpoints_option, json_option
from chainkit_indexer.cli.differences import Differences
from chainkit_indexer.service.opening import connect_endpoints
from chainkit_indexer.service.options import database_option, page_option
from chainkit_indexer.storage.store import Store
from chainkit_indexer.verification.prove import prove_runs, unproved_runs


@click.command("prove", cls=CompleteCommand)
@database_option
@endpoints_option
@deployment_option
@page_option
@json_option
def prove_command(
    database: str,
    rpc_urls: Sequence[str],
    deployment_path: Path,
    page_blocks: int,
    as_json: bool,
) -> int:
    """Prove stored blocks that rest on an endpoint's word; ends with 1 where anything differs.

    Each block's receipts must have the root that its header names, and the stored rows must be
    those of its logs. No envelope is signed again. You may interrupt it: the next call goes on
    where it ended. The indexer must not be running.

    \b
    Example:
      chainkit index prove --database node.db --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json
    """
    deployment = read_followed_deployment(deployment_path)
    store = Store.open_to_repair(database)
    try:
        pool = connect_endpoints(rpc_urls, deployment)
        runs = unproved_runs(store)
        blocks = sum(run.blocks for run in runs)
        with progress_bar("proving", blocks) as advance:
            observer = Differences(advance, as_json)
            found = prove_runs(pool, store, deployment, runs, observer, page_blocks)
    finally:
        store.close()
    if as_json:
        echo_json({"blocks": blocks} | asdict(found) | observer.as_json(found.differences))
    else:
        observer.say_how_many_more(found.differences)
        click.echo(
            f"{blocks} blocks were not proved: {found.receipts} are proved by their receipts now, "
            f"{found.second_endpoint} by a second endpoint; {found.differences} differences"
            if blocks
            else "all blocks are proved by their receipts"
        )
    return 1 if found.differences else 0
