"""``chainkit registry list`` and ``show``."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from chainkit.cli.registry.options import (
    NODE_ID,
    block_option,
    echo_registry,
    key_address,
    node_json,
    open_registry,
    place_json,
)
from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.registry import node_facts, status_word
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import LINE_WIDTH, echo_fact
from chainkit.terminal.options import deployment_option, echo_json, json_option, rpc_option
from chainkit.text.printable import printable
from chainkit.types import Node


@click.command("list", cls=CompleteCommand)
@rpc_option
@deployment_option
@block_option
@json_option
def list_nodes(
    rpc_url: str, deployment_path: Path, block_number: int | None, as_json: bool
) -> None:
    """List all nodes, enabled or not, at a block.

    \b
    Example:
      chainkit registry list --rpc http://127.0.0.1:8545 --deployment deployment.json --json
    """
    found, record, block = open_registry(rpc_url, deployment_path, block_number)
    owner, pending = found.owner(block), found.pending_owner(block)
    nodes, is_open = found.nodes(block), found.address_updates_open(block)
    offered_to = None if pending == NO_ACCOUNT else pending
    if as_json:
        content = {
            "owner": owner,
            "pending_owner": offered_to,
            "address_updates_open": is_open,
            "nodes": [node_json(node) for node in nodes],
        }
        echo_json(place_json(record, block) | content)
        return
    echo_registry(record)
    echo_fact("owner", owner)
    if offered_to:
        echo_fact("offered to", offered_to)
    if is_open:
        echo_fact("updates", "open: operators may change their nodes' URLs")
    echo_fact("block", f"{block}, nodes: {len(nodes)}")
    for node in nodes:
        _echo_node(f"{node.node_id:>6}  {status_word(node):<8}  {key_address(node):<42}  ", node)


def _echo_node(start: str, node: Node) -> None:
    """Print a node's line; a URL that is too long for the line is continued below."""
    first, *rest = textwrap.wrap(printable(node.http_address), LINE_WIDTH - len(start)) or [""]
    click.echo(f"{start}{first}".rstrip())
    for line in rest:
        click.echo(" " * len(start) + line)


@click.command("show", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID)
@rpc_option
@deployment_option
@block_option
@json_option
def show(
    node_id: int, rpc_url: str, deployment_path: Path, block_number: int | None, as_json: bool
) -> None:
    """Show one node with its holder and its signing key.

    \b
    Example:
      chainkit registry show 100 --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    found, record, block = open_registry(rpc_url, deployment_path, block_number)
    registered = found.node(node_id, block)
    if as_json:
        content = node_json(registered.node) | {"holder": registered.holder}
        echo_json(place_json(record, block) | content)
        return
    echo_fact("node", str(node_id))
    for name, value in node_facts(registered).items():
        echo_fact(name, value)
    echo_fact("key's address", key_address(registered.node))
    echo_fact("block", str(block))
