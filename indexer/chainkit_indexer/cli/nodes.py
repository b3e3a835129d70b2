"""The history of the node registry, as the indexer keeps it."""

from __future__ import annotations

from typing import Any

import click

from chainkit.contracts.registry import status_word
from chainkit.errors import StoreError
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.hexadecimal import hex0x
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Node
from chainkit_indexer.cli.lines import short
from chainkit_indexer.registry.history import (
    FollowedHistory,
    RegistryUpdate,
    fold_updates,
    read_followed_history,
    read_updates,
)
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option


@click.command("nodes", cls=CompleteCommand)
@database_option
@click.option(
    "--block",
    "block_number",
    type=click.IntRange(min=0),
    metavar="N",
    help="As of this height of the registry's chain; without it, as of the newest one followed.",
)
@click.option("--history", is_flag=True, help="Show each change instead of the nodes.")
@json_option
def nodes_command(database: str, block_number: int | None, history: bool, as_json: bool) -> None:
    """List the registry's nodes with their keys and status, at a block or through time.

    Keys are shortened; --json has them in full.

    \b
    Example:
      chainkit index nodes --database node.db --history
    """
    with existing(database) as store, store.reading() as connection:
        followed, last = _followed(store.name, read_followed_history(connection), block_number)
        updates = read_updates(connection, block_number)
    nodes = fold_updates((), (update.node for update in updates))
    if as_json:
        rows = [_update_json(each) for each in updates] if history else [*map(_node_json, nodes)]
        echo_json(_place_json(followed, last, block_number) | {_name(history): rows})
        return
    block = last if block_number is None else block_number
    click.echo(f"registry {hex0x(followed.registry.address)} of chain {followed.registry.chain_id}")
    click.echo(f"block    {block}, {_name(history)}: {len(updates if history else nodes)}")
    for line in map(_update_text, updates) if history else map(_node_text, nodes):
        click.echo(line)


def _name(history: bool) -> str:
    return "updates" if history else "nodes"


def _followed(
    name: str, followed: FollowedHistory | None, block_number: int | None
) -> tuple[FollowedHistory, BlockReference]:
    """Return what is followed, and up to where. Raises StoreError where that is not far enough."""
    if followed is None or followed.last is None:
        raise StoreError(f"database {name}", "a registry's history", "none")
    if block_number is not None and block_number > followed.last.number:
        subject = f"registry's history in {name}"
        raise StoreError(subject, f"block {block_number}", f"blocks up to {followed.last.number}")
    return followed, followed.last


def _node_text(node: Node) -> str:
    shown = printable(node.http_address)
    return f"{node.node_id:>6}  {status_word(node):<8}  {short(node.signing_key)}  {shown}"


def _update_text(update: RegistryUpdate) -> str:
    return f"{f'{update.block.number}.{update.log_index}':>12}  {_node_text(update.node)}"


def _place_json(
    followed: FollowedHistory, last: BlockReference, block_number: int | None
) -> dict[str, Any]:
    return {
        "chain_id": followed.registry.chain_id,
        "registry": hex0x(followed.registry.address),
        "block_number": last.number if block_number is None else block_number,
        "followed_to": {"number": last.number, "hash": hex0x(last.hash)},
    }


def _node_json(node: Node) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "status": status_word(node),
        "signing_key": hex0x(node.signing_key),
        "http_address": node.http_address,
    }


def _update_json(update: RegistryUpdate) -> dict[str, Any]:
    return _node_json(update.node) | {
        "block_number": update.block.number,
        "block_hash": hex0x(update.block.hash),
        "timestamp": update.timestamp,
        "log_index": update.log_index,
        "transaction_hash": hex0x(update.transaction_hash),
    }
