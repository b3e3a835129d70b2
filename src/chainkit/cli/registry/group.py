"""``chainkit registry``: read the nodes, and change them without sending anything by accident."""

from __future__ import annotations

import click

from chainkit.cli.registry.changes import CHANGES
from chainkit.cli.registry.desired import diff, plan
from chainkit.cli.registry.history import history
from chainkit.cli.registry.reading import list_nodes, show
from chainkit.terminal.command import CompleteGroup


@click.group(cls=CompleteGroup)
def registry() -> None:
    """Read and change the registry of nodes; changes are dry runs until --broadcast or --propose.

    \b
    Example:
      chainkit registry list --rpc http://127.0.0.1:8545 --deployment deployment.json
    """


for _command in (list_nodes, show, history, diff, plan, *CHANGES):
    registry.add_command(_command)
