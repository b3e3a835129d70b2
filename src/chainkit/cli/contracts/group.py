"""``chainkit contracts``: compares the deployed contracts with the package, and changes them."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup

_ADMINISTRATION: Final = "chainkit.cli.contracts.administration"

_COMMANDS: Final = {
    "verify": LazyCommand(
        "chainkit.cli.contracts.verify", "verify", "Compare a deployment with this package."
    ),
    "upgrade": LazyCommand(
        "chainkit.cli.contracts.upgrade", "upgrade", "Upgrade a log to this package's code."
    ),
    "pause": LazyCommand(_ADMINISTRATION, "pause", "Stop new payloads of a log."),
    "unpause": LazyCommand(_ADMINISTRATION, "unpause", "Accept new payloads of a log again."),
    "grant-admin": LazyCommand(_ADMINISTRATION, "grant_admin", "Name one more administrator."),
    "revoke-admin": LazyCommand(_ADMINISTRATION, "revoke_admin", "Remove an administrator."),
    "set-bounds": LazyCommand(_ADMINISTRATION, "set_bounds", "Set the sizes a payload may have."),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def contracts() -> None:
    """Compare the deployed contracts with this package, administer and upgrade them.

    \b
    Example:
      chainkit contracts verify --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
