"""``chainkit gateway``: an application's way into the network. Options are read here only."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages("grpc", "grpc_health", "grpc_reflection", "prometheus_client", "sqlalchemy")

_COMMANDS: Final = {
    "costs": LazyCommand(
        "chainkit_gateway.cli.costs",
        "costs_command",
        "Tell what publishing cost, by day and client, exact.",
    ),
    "run": LazyCommand(
        "chainkit_gateway.cli.run",
        "run_command",
        "Publish for an application's clients until a signal stops it (SIGINT or SIGTERM).",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def gateway() -> None:
    """Sign, pay and publish what an application's clients send.

    \b
    Example:
      chainkit gateway run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore payer.json --password-file password.txt --journal gateway.db
    """
