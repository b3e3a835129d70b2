"""``chainkit registry history``: all changes of the nodes, and the accounts that made them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from chainkit.cli.registry.options import (
    NODE_ID,
    block_option,
    echo_registry,
    open_registry,
    place_json,
)
from chainkit.contracts.registry import RegistryEvent, read_history, telling
from chainkit.errors import ConfigurationError
from chainkit.terminal.bar import progress_bar
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import (
    deployment_option,
    echo_json,
    height_option,
    json_option,
    rpc_option,
)
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json


@click.command("history", cls=CompleteCommand)
@click.argument("node_id", type=NODE_ID, required=False)
@rpc_option
@deployment_option
@height_option(
    "--from-block",
    "first_block",
    "Height to begin at; the registry's first block where it is not given.",
)
@block_option
@json_option
def history(
    node_id: int | None,
    rpc_url: str,
    deployment_path: Path,
    first_block: int | None,
    block_number: int | None,
    as_json: bool,
) -> None:
    """Show the history of the registry, or of one node, by block and transaction.

    The result of the events is compared with the registry at the end; with --from-block, only the
    nodes and facts of the events.

    \b
    Example:
      chainkit registry history 100 --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    found, record, block = open_registry(rpc_url, deployment_path, block_number)
    created = record.node_registry.block
    first = created if first_block is None else first_block
    if not created <= first <= block.number:
        expected = f"a height from {created} (the registry's) to {block.number}"
        raise ConfigurationError("--from-block", expected, first)
    if node_id is not None:
        found.node(node_id, block)
    with progress_bar("blocks", block.number - first + 1) as advance:
        events = read_history(found, first, block, first == created, advance)
    wanted = [event for event in events if node_id in (None, event.node_id)]
    if as_json:
        content = {"from_block": first, "events": [_event_json(event) for event in wanted]}
        echo_json(place_json(record, block) | content)
        return
    echo_registry(record)
    echo_fact("read", f"blocks {first} to {block}")
    _echo_events(wanted)


def _echo_events(events: list[RegistryEvent]) -> None:
    if not events:
        echo_fact("events", "none")
    for transaction_hash, group in groupby(telling(events), lambda each: each.transaction_hash):
        of_transaction = list(group)
        block = of_transaction[0].block
        click.echo()
        echo_fact("block", f"{block}, {_moment(of_transaction[0].timestamp)}")
        echo_fact("transaction", hex0x(transaction_hash))
        account = None
        for event in of_transaction:
            if event.account is not None and event.account != account:
                account = event.account
                echo_fact("by", account)
            subject = "registry" if event.node_id is None else f"node {event.node_id}"
            echo_fact(subject, event.words)


def _moment(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        # A private chain's clock may show any time.
        return f"{seconds} s after 1970"


def _event_json(event: RegistryEvent) -> dict[str, Any]:
    return {
        "event": event.name,
        "arguments": _plain(event.arguments),
        "account": event.account,
        "node_id": event.node_id,
        "block": reference_as_json(event.block),
        "timestamp": event.timestamp,
        "transaction_hash": hex0x(event.transaction_hash),
        "log_index": event.log_index,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return hex0x(value)
    if hasattr(value, "items"):
        return {name: _plain(item) for name, item in value.items()}
    return value
