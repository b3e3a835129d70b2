"""``chainkit backups``: the storage service of message history. Options are read here only."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages("aiohttp", "prometheus_client")

_COMMANDS: Final = {
    "grant": LazyCommand(
        "chainkit_backups.cli.grant",
        "grant_command",
        "Print a URL to which one file may be uploaded, once.",
    ),
    "serve": LazyCommand(
        "chainkit_backups.cli.serve",
        "serve_command",
        "Store encrypted files for some days, until a signal stops it (SIGINT or SIGTERM).",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def backups() -> None:
    """Store message history that travels between a person's devices.

    \b
    Example:
      chainkit backups serve --folder backups
    """
