"""``chainkit registry``: read the nodes, and change them without sending anything by accident."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click

from chainkit.chain import Endpoint
from chainkit.cli.command import CompleteGroup
from chainkit.cli.options import (
    deployment_option,
    echo_json,
    hex0x,
    json_option,
    open_chain,
    password_option,
    rpc_option,
)
from chainkit.cli.sending import broadcast_option, sender_option, timeout_option
from chainkit.deployment import DeploymentRecord
from chainkit.errors import ConfigurationError
from chainkit.interface import printable, render
from chainkit.registry import (
    Plan,
    RegisteredNode,
    Registry,
    execute_plan,
    node_facts,
    plan_add,
    plan_set_status,
    sign_plan,
    status_word,
)
from chainkit.signatures import address_of, is_valid_public_key
from chainkit.transactions import Receipt
from chainkit.types import BlockHeader, BlockReference, Node

NOT_SENT: Final = "nothing was sent; add --broadcast --keystore FILE to send"

_LABEL_WIDTH: Final = 16
_LINE_WIDTH: Final = 100

NODE_ID: Final = click.IntRange(1, 2**256 - 1)
"""What the registry's uint256 holds."""

block_option = click.option(
    "--block",
    "block_number",
    type=click.IntRange(min=0),
    metavar="N",
    help="Height to read at; the newest block where it is not given.",
)

_WRITE_OPTIONS: Final = (
    rpc_option,
    deployment_option,
    broadcast_option,
    sender_option("the registry's owner"),
    password_option,
    timeout_option,
    json_option,
)


def _write_options(command: Callable[..., None]) -> Callable[..., None]:
    return reduce(lambda inner, option: option(inner), reversed(_WRITE_OPTIONS), command)


@click.group(cls=CompleteGroup)
def registry() -> None:
    """Read and change the registry of nodes; changes are dry runs until --broadcast.

    \b
    Example:
      chainkit registry list --rpc http://127.0.0.1:8545 --deployment deployment.json
    """


@registry.command("list")
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
    owner, nodes = found.owner(block), found.nodes(block)
    if as_json:
        content = {"owner": owner, "nodes": [_node_json(node) for node in nodes]}
        echo_json(_place_json(record, block) | content)
        return
    echo_fact("registry", f"{_address(found.address)} (chain id {record.chain_id})")
    echo_fact("owner", owner)
    echo_fact("block", f"{block}, nodes: {len(nodes)}")
    for node in nodes:
        key_address = _key_address(node)
        url = printable(node.http_address)
        click.echo(f"{node.node_id:>6}  {status_word(node):<8}  {key_address:<42}  {url}")


@registry.command("show")
@click.argument("node_id", type=NODE_ID)
@rpc_option
@deployment_option
@block_option
@json_option
def show(
    node_id: int, rpc_url: str, deployment_path: Path, block_number: int | None, as_json: bool
) -> None:
    """Show one node with its operator and its signing key.

    \b
    Example:
      chainkit registry show 100 --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    found, record, block = open_registry(rpc_url, deployment_path, block_number)
    registered = found.node(node_id, block)
    if as_json:
        echo_json(_place_json(record, block) | _registered_json(registered))
        return
    echo_fact("node", str(node_id))
    for name, value in node_facts(registered).items():
        echo_fact(name, value)
    echo_fact("key's address", _key_address(registered.node))
    echo_fact("block", str(block))


@registry.command("add")
@click.option("--owner", "holder", required=True, metavar="ADDRESS", help="The node's operator.")
@click.option(
    "--public-key",
    "public_key",
    required=True,
    metavar="HEX",
    help="The node's uncompressed signing key, as `chainkit key show` prints it.",
)
@click.option(
    "--http-address", required=True, metavar="URL", help="Where clients and nodes reach the node."
)
@_write_options
def add(holder: str, public_key: str, http_address: str, **options: Any) -> None:
    """Add an enabled node; a dry run without --broadcast.

    \b
    Example:
      chainkit registry add --owner 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --public-key 0x04… --http-address https://node.example.org \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    key = _public_key(public_key)
    _change(lambda found, block: plan_add(found, block, holder, key, http_address), **options)


@registry.command("enable")
@click.argument("node_id", type=NODE_ID)
@_write_options
def enable(node_id: int, **options: Any) -> None:
    """Enable a disabled node; a dry run without --broadcast.

    \b
    Example:
      chainkit registry enable 100 --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change(lambda found, block: plan_set_status(found, block, node_id, True), **options)


@registry.command("disable")
@click.argument("node_id", type=NODE_ID)
@_write_options
def disable(node_id: int, **options: Any) -> None:
    """Disable an enabled node; a dry run without --broadcast.

    \b
    Example:
      chainkit registry disable 100 --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --broadcast --keystore owner.json
    """
    _change(lambda found, block: plan_set_status(found, block, node_id, False), **options)


def open_registry(
    rpc_url: str, deployment_path: Path, block_number: int | None
) -> tuple[Registry, DeploymentRecord, BlockReference]:
    """Open the chain and return its registry and the block to read at.

    Raises ConfigurationError for a block above the head or below the registry's own.
    """
    endpoint, record, head = open_chain(rpc_url, deployment_path)
    block = head.reference
    if block_number is not None:
        block = _block_at(endpoint, record, head, block_number)
    return Registry(endpoint, record.node_registry.address), record, block


def _block_at(
    endpoint: Endpoint, record: DeploymentRecord, head: BlockHeader, number: int
) -> BlockReference:
    first = record.node_registry.block
    if not first <= number <= head.number:
        expected = f"a height from {first} (the registry's) to {head.number} (the head)"
        raise ConfigurationError("--block", expected, number)
    return endpoint.header(number).reference


def _change(
    make_plan: Callable[[Registry, BlockReference], Plan],
    rpc_url: str,
    deployment_path: Path,
    broadcast: bool,
    keystore_path: Path | None,
    password_path: Path | None,
    timeout_seconds: float,
    as_json: bool,
) -> None:
    if broadcast and keystore_path is None:
        raise click.UsageError("--broadcast needs --keystore FILE")
    found, record, block = open_registry(rpc_url, deployment_path, None)
    plan = make_plan(found, block)
    if not as_json:
        _echo_plan(plan, record.chain_id)
    if not broadcast or keystore_path is None:
        _echo_end(plan, record, None, as_json)
        return
    from chainkit.cli.key import load_secret

    secret = load_secret(keystore_path, password_path)
    signed = sign_plan(found, plan, record.chain_id, secret)
    if not as_json:
        echo_fact("sending", hex0x(signed.hash))
    receipt = execute_plan(found, plan, signed, timeout_seconds)
    _echo_end(plan, record, receipt, as_json)


def _echo_plan(plan: Plan, chain_id: int) -> None:
    echo_fact("call", f"{plan.function} of NodeRegistry {_address(plan.target)}")
    for name, value in plan.arguments.items():
        echo_fact(f"  {name}", render(value))
    echo_fact("from", f"{plan.sender} (the registry's owner)")
    echo_fact("chain id", str(chain_id))
    echo_fact("read at", f"block {plan.block}")
    for line in plan.difference:
        echo_fact("changes", line)
    echo_fact("gas", f"{plan.gas:,} (estimated)")
    echo_fact("calldata", f"{len(plan.calldata)} bytes")
    echo_fact("  keccak256", hex0x(plan.calldata_hash))


def _echo_end(plan: Plan, record: DeploymentRecord, receipt: Receipt | None, as_json: bool) -> None:
    if as_json:
        echo_json(_plan_json(plan, record) | _sent_json(receipt))
    elif receipt is None:
        click.echo(NOT_SENT)
    else:
        echo_fact("done", f"in block {receipt.block.reference}, and read back as planned")


def echo_fact(name: str, value: str) -> None:
    """Print a name and what it is, wrapped to fit 100 columns."""
    first, *rest = textwrap.wrap(value, _LINE_WIDTH - _LABEL_WIDTH, break_on_hyphens=False) or [""]
    click.echo(f"{name:<{_LABEL_WIDTH}}{first}".rstrip())
    for line in rest:
        click.echo(" " * _LABEL_WIDTH + line)


def _public_key(text: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        got = f'"{printable(text)}"'
        raise ConfigurationError("public key", "0x and 130 hex digits", got) from None


def _address(address: bytes) -> str:
    from eth_utils.address import to_checksum_address

    return to_checksum_address(address)


def _key_address(node: Node) -> str:
    return address_of(node.signing_key) if is_valid_public_key(node.signing_key) else "no valid key"


def _place_json(record: DeploymentRecord, block: BlockReference) -> dict[str, Any]:
    return {
        "chain_id": record.chain_id,
        "registry": _address(record.node_registry.address),
        "block": {"number": block.number, "hash": hex0x(block.hash)},
    }


def _node_json(node: Node) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "status": status_word(node),
        "signing_key": hex0x(node.signing_key),
        "http_address": node.http_address,
    }


def _registered_json(registered: RegisteredNode) -> dict[str, Any]:
    return _node_json(registered.node) | {"holder": registered.holder}


def _plan_json(plan: Plan, record: DeploymentRecord) -> dict[str, Any]:
    arguments = {
        name: hex0x(value) if isinstance(value, bytes) else value
        for name, value in plan.arguments.items()
    }
    return _place_json(record, plan.block) | {
        "sender": plan.sender,
        "call": {"function": plan.function, "arguments": arguments},
        "calldata": hex0x(plan.calldata),
        "calldata_keccak256": hex0x(plan.calldata_hash),
        "gas": plan.gas,
        "before": _registered_json(plan.before) if plan.before else None,
        "after": _registered_json(plan.after),
        "difference": list(plan.difference),
    }


def _sent_json(receipt: Receipt | None) -> dict[str, Any]:
    if receipt is None:
        return {"sent": False}
    block = receipt.block.reference
    return {
        "sent": True,
        "transaction_hash": hex0x(receipt.transaction_hash),
        "mined_in": {"number": block.number, "hash": hex0x(block.hash)},
    }
