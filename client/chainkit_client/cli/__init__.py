"""``chainkit client``: use of the network without trust in a node. Options are read here only."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages("grpc", "prometheus_client")

_COMMANDS: Final = {
    "check": LazyCommand(
        "chainkit_client.cli.check",
        "check_command",
        "Compare all nodes with each other and with the chain; report what they do wrong.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def client() -> None:
    """Use the network, and check what its nodes answer.

    \b
    Example:
      chainkit client check --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
