"""Commands for a doubtful database: prove its rows, take blocks back, upgrade its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from chainkit.contracts.followed import read_followed_deployment
from chainkit.errors import StoreError
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import deployment_option, echo_json, endpoints_option, json_option
from chainkit.text.json_values import reference_as_json
from chainkit_indexer.cli.database_chain import connect_to_chain_of
from chainkit_indexer.cli.differences import Differences
from chainkit_indexer.rewind import Rewind, plan_rewind, rewind
from chainkit_indexer.service.opening import connect_endpoints, existing
from chainkit_indexer.service.options import database_option, page_option
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.migrate import REVISION, revision, upgrade
from chainkit_indexer.storage.store import Store
from chainkit_indexer.verification.verify import stored_range, verify_range

apply_option = click.option(
    "--apply", "is_applied", is_flag=True, help="Do it; without it, nothing is changed."
)


@click.command("verify", cls=CompleteCommand)
@database_option
@endpoints_option
@deployment_option
@click.option("--from-block", type=click.IntRange(min=0), help="[default: the first]")
@click.option(
    "--to-block",
    type=click.IntRange(min=0),
    help="[default: the final block; while nothing is final, the cursor]",
)
@page_option
@json_option
def verify_command(
    database: str,
    rpc_urls: Sequence[str],
    deployment_path: Path,
    from_block: int | None,
    to_block: int | None,
    page_blocks: int,
    as_json: bool,
) -> int:
    """Compare the stored rows with the chain again; ends with 1 where anything differs.

    Blocks are fetched as the indexer does, every envelope is built again, and its signature must
    recover to the node's key. Nothing is written, and no private key is needed. Above the final
    block a reorg during the comparison also gives differences. A difference is read again after
    `chainkit index rewind` to the block before the first one that does.

    \b
    Example:
      chainkit index verify --database node.db --rpc http://127.0.0.1:8545 \\
        --deployment deployment.json
    """
    deployment = read_followed_deployment(deployment_path)
    with existing(database) as store:
        pool = connect_endpoints(rpc_urls, deployment)
        first, last = stored_range(store, from_block, to_block)
        with progress_bar("verifying", last - first + 1) as advance:
            observer = Differences(advance, as_json)
            found = verify_range(pool, store, deployment, (first, last), observer, page_blocks)
    if as_json:
        echo_json(asdict(found) | observer.as_json(found.differences))
    else:
        compared = f"{found.envelopes} envelopes, {found.quarantined} quarantined"
        observer.say_how_many_more(found.differences)
        verdict = f"{found.differences} differences" if found.differences else "all as on the chain"
        click.echo(f"blocks {first} to {last}: {compared}: {verdict}")
    return 1 if found.differences else 0


@click.command("rewind", cls=CompleteCommand)
@database_option
@click.option("--to-block", type=click.IntRange(min=0), required=True, help="Last block to keep.")
@click.option(
    "--below-final",
    is_flag=True,
    help="Also take back what is final. Clients, auditors and exports were told that it never "
    "changes: do it only where the chain itself changed that deep, or for rows that do not hold, "
    "as `chainkit index verify` finds them.",
)
@click.option(
    "--rpc",
    "rpc_urls",
    envvar="CHAINKIT_RPC",
    show_envvar=True,
    multiple=True,
    metavar="URL",
    help="JSON-RPC endpoint; give several, in order of preference. Needed with --below-final only.",
)
@apply_option
@json_option
def rewind_command(
    database: str,
    to_block: int,
    below_final: bool,
    rpc_urls: Sequence[str],
    is_applied: bool,
    as_json: bool,
) -> None:
    """Take back everything above a block, as a reorg does, so that the next run reads it again.

    Served envelopes move to the journal as dropped, until they are seen again. The indexer must not
    be running. Without --apply it only says what it would do.

    \b
    Example:
      chainkit index rewind --database node.db --to-block 1204331
    """
    store = (Store.open_to_repair if is_applied else Store.open_existing)(database)
    try:
        plan = _plan(store, to_block, below_final, rpc_urls)
        reorg_id = rewind(store, plan) if is_applied else None
    finally:
        store.close()
    if as_json:
        echo_json(_rewind_as_json(plan, reorg_id))
        return
    for line in _rewind_as_text(plan, reorg_id):
        click.echo(line)


def _plan(store: Store, to_block: int, below_final: bool, rpc_urls: Sequence[str]) -> Rewind:
    if not (below_final and rpc_urls):
        return plan_rewind(store, to_block, below_final)
    pool = connect_to_chain_of(store.identity, rpc_urls)
    return pool.first_answer(lambda endpoint: plan_rewind(store, to_block, below_final, endpoint))


def _rewind_as_text(plan: Rewind, reorg_id: int | None) -> list[str]:
    target = plan.target.header.reference
    lines = [
        f"cursor       block {plan.position.header.reference}",
        f"back to      block {target}",
        *([] if plan.reason is None else [f"because      {plan.reason}"]),
        f"to journal   {plan.depth} blocks: {plan.envelopes} envelopes, "
        f"{plan.quarantined} quarantined",
    ]
    if target.number < plan.final_block:
        lines.append(f"no longer    final: blocks {target.number + 1} to {plan.final_block}")
    if reorg_id is None:
        return [*lines, "nothing was changed; add --apply to do it"]
    return [*lines, f"done         reorg {reorg_id} in the journal; the next run reads it again"]


def _rewind_as_json(plan: Rewind, reorg_id: int | None) -> dict[str, Any]:
    return {
        "cursor": reference_as_json(plan.position.header.reference),
        "to_block": plan.to_block,
        "target": reference_as_json(plan.target.header.reference),
        "reason": plan.reason,
        "final_block": plan.final_block if plan.final_block >= 0 else None,
        "blocks": plan.depth,
        "envelopes": plan.envelopes,
        "quarantined": plan.quarantined,
        "applied": reorg_id is not None,
        "reorg_id": reorg_id,
    }


@click.command("migrate", cls=CompleteCommand)
@database_option
@apply_option
@json_option
def migrate_command(database: str, is_applied: bool, as_json: bool) -> None:
    """Bring a database of an older chainkit up to date, with its data in place.

    The indexer must not be running. It is one transaction, but copy the database first: there is
    no way back. Without --apply it only says what it would do.

    \b
    Example:
      chainkit index migrate --database node.db --apply
    """
    opened = Database(database, read_only=not is_applied)
    try:
        opened.check_file(create=False)
        found = upgrade(opened) if is_applied else revision(opened)
    finally:
        opened.close()
    if found is None:
        raise StoreError(f"database {opened.name}", "an indexer's tables", "none")
    is_older = found < REVISION
    if as_json:
        echo_json({"before": found, "newest": REVISION, "applied": is_applied and is_older})
    elif found == REVISION:
        click.echo(f"up to date: revision {found}")
    elif not is_older:
        click.echo(f"revision {found} is none of this program, whose newest is {REVISION}")
    else:
        done = "upgraded" if is_applied else "nothing was changed; add --apply to upgrade"
        click.echo(f"{done}: revision {found} to {REVISION}")
