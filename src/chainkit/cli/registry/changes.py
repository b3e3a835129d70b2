"""The commands that change the registry: one call each, shown before it is sent or proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click

from chainkit.cli.change.changing import ChangeOptions, ReceiptFacts, change, change_options
from chainkit.cli.change.typed_addresses import typed_account
from chainkit.cli.registry.addresses import UrlCheck, url_check_options
from chainkit.cli.registry.options import NODE_ID
from chainkit.contracts.checks import NO_ACCOUNT
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.interface import shipped_interface
from chainkit.contracts.registry import (
    Registry,
    check_http_address,
    check_public_key,
)
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.registry_effects import REGISTRY_EFFECTS
from chainkit.errors import ConfigurationError
from chainkit.signatures import address_of
from chainkit.terminal.command import CompleteCommand
from chainkit.text.printable import printable
from chainkit.types import Receipt

MakeArguments = Callable[[ContractState, DeploymentRecord], tuple[object, ...]]

OWNER: Final = "the registry's owner"
HOLDER: Final = "the node's holder"
PENDING_OWNER: Final = "the account that ownership was offered to"


@click.command("add", cls=CompleteCommand)
@click.option("--holder", required=True, metavar="ADDRESS", help="The account that gets the node.")
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
@url_check_options
@change_options(OWNER)
def add(
    holder: str,
    public_key: str,
    http_address: str,
    url_check: UrlCheck,
    options: ChangeOptions,
) -> None:
    """Add an enabled node; a dry run without --broadcast or --propose.

    The node's id is given by the registry when it is added; until then its key names it.

    \b
    Example:
      chainkit registry add --holder 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --public-key 0x04… --http-address https://node.example.org \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    holder, key = typed_account(holder, "--holder"), _public_key(public_key)
    check_public_key(key)
    check_http_address(http_address)

    def arguments(state: ContractState, record: DeploymentRecord) -> tuple[object, ...]:
        _check_unused(state, record, key)
        url_check.warn_of_silence([http_address])
        return holder, key, http_address

    _change("addNode", arguments, options, facts_of=_new_node)


@click.command("enable", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID)
@change_options(OWNER)
def enable(node_id: int, options: ChangeOptions) -> None:
    """Enable a disabled node; a dry run without --broadcast or --propose.

    \b
    Example:
      chainkit registry enable 100 --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change("updateHealth", lambda *_: (node_id, True), options)


@click.command("disable", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID)
@change_options(OWNER)
def disable(node_id: int, options: ChangeOptions) -> None:
    """Disable an enabled node; a dry run without --broadcast or --propose.

    \b
    Example:
      chainkit registry disable 100 --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --broadcast --keystore owner.json
    """
    _change("updateHealth", lambda *_: (node_id, False), options)


@click.command("transfer", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID)
@click.option("--holder", required=True, metavar="ADDRESS", help="The account that gets the node.")
@change_options(OWNER)
def transfer(node_id: int, holder: str, options: ChangeOptions) -> None:
    """Give a node to another holder; a dry run without --broadcast or --propose.

    The registry's owner moves it, whoever holds it. Its key and URL stay the same, so the old key
    continues to sign.

    \b
    Example:
      chainkit registry transfer 100 --holder 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    holder = typed_account(holder, "--holder")

    def arguments(state: ContractState, record: DeploymentRecord) -> tuple[object, ...]:
        registry = Registry(state.endpoint, record.node_registry.address)
        return registry.node(node_id, state.block).holder, holder, node_id

    _change("transferFrom", arguments, options)


@click.command("set-url", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID)
@click.option(
    "--http-address", required=True, metavar="URL", help="Where clients and nodes reach the node."
)
@url_check_options
@change_options(HOLDER)
def set_url(node_id: int, http_address: str, url_check: UrlCheck, options: ChangeOptions) -> None:
    """Change the URL of your node; a dry run without --broadcast or --propose.

    Only the node's holder can, and only while the registry's owner lets operators change URLs
    (`chainkit registry open-updates`). The node keeps its id and its key.

    \b
    Example:
      chainkit registry set-url 100 --http-address https://node.example.org:5051 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --broadcast --keystore holder.json
    """
    check_http_address(http_address)

    def arguments(*_: object) -> tuple[object, ...]:
        url_check.warn_of_silence([http_address])
        return node_id, http_address

    _change("updateHttpAddress", arguments, options, HOLDER)


@click.command("open-updates", cls=CompleteCommand)
@change_options(OWNER)
def open_updates(options: ChangeOptions) -> None:
    """Let operators change their nodes' URLs; a dry run without --broadcast or --propose.

    XIP-49 §3.1.1 has them closed during the testnet phase.

    \b
    Example:
      chainkit registry open-updates --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change("setHttpAddressUpdatesOpen", lambda *_: (True,), options)


@click.command("close-updates", cls=CompleteCommand)
@change_options(OWNER)
def close_updates(options: ChangeOptions) -> None:
    """Keep operators from changing their nodes' URLs; a dry run without --broadcast or --propose.

    \b
    Example:
      chainkit registry close-updates --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change("setHttpAddressUpdatesOpen", lambda *_: (False,), options)


@click.command("hand-over", cls=CompleteCommand)
@click.option("--to", "new_owner", metavar="ADDRESS", help="The account to offer ownership to.")
@click.option("--withdraw", is_flag=True, help="Take an offer back that nobody has accepted yet.")
@change_options(OWNER)
def hand_over(new_owner: str | None, withdraw: bool, options: ChangeOptions) -> None:
    """Offer the registry to a new owner; a dry run without --broadcast or --propose.

    Ownership goes over in two steps, so that a mistyped address cannot take it: the owner offers
    it, and stays the owner until the other account accepts with `chainkit registry accept`. A
    second offer replaces the first.

    \b
    Example:
      chainkit registry hand-over --to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    if withdraw == (new_owner is not None):
        raise click.UsageError("give either --to ADDRESS or --withdraw")
    offered = NO_ACCOUNT if new_owner is None else typed_account(new_owner, "--to")
    _change("transferOwnership", lambda *_: (offered,), options)


@click.command("accept", cls=CompleteCommand)
@change_options(PENDING_OWNER)
def accept(options: ChangeOptions) -> None:
    """Accept the registry that was offered; a dry run without --broadcast or --propose.

    The second step of a hand-over: only the account that `chainkit registry hand-over` named can
    take it, and from then on it alone changes the registry.

    \b
    Example:
      chainkit registry accept --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    _change("acceptOwnership", lambda *_: (), options, PENDING_OWNER)


CHANGES: Final[tuple[click.Command, ...]] = (
    add,
    enable,
    disable,
    transfer,
    set_url,
    open_updates,
    close_updates,
    hand_over,
    accept,
)


def _change(
    function: str,
    arguments: MakeArguments,
    options: ChangeOptions,
    whose: str = OWNER,
    facts_of: ReceiptFacts = lambda _: {},
) -> None:
    def calls(state: ContractState, record: DeploymentRecord) -> list[Call]:
        return [Call.make(record, "NodeRegistry", function, *arguments(state, record))]

    change(calls, REGISTRY_EFFECTS, whose, options, facts_of)


def _new_node(receipt: Receipt) -> dict[str, int]:
    """Return the id that the registry gave to the new node, in words."""
    events = map(shipped_interface("NodeRegistry").decode_event, receipt.logs)
    found = [event[1]["nodeId"] for event in events if event and event[0] == "NodeAdded"]
    return {"node_id": found[0]} if found else {}


def _check_unused(state: ContractState, record: DeploymentRecord, key: bytes) -> None:
    """Raise ConfigurationError, naming the node, where a node has the key, even a disabled node."""
    registry = Registry(state.endpoint, record.node_registry.address)
    found = registry.find_node_of_key(address_of(key), state.block)
    if found is not None:
        got = f"the key of node {found.node.node_id}"
        raise ConfigurationError("public key", "one never registered", got)


def _public_key(text: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        got = f'"{printable(text)}"'
        raise ConfigurationError("public key", "0x and 130 hex digits", got) from None
