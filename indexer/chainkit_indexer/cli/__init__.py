"""``chainkit index``: the node operator's commands. The only place here that reads options."""

from __future__ import annotations

import click

from chainkit.terminal.command import CompleteGroup, require_packages
from chainkit_indexer.cli.backup import backup_command, restore_command
from chainkit_indexer.cli.export import export_command
from chainkit_indexer.cli.follow import run_command, step_command
from chainkit_indexer.cli.inspect import history_command, status_command
from chainkit_indexer.cli.nodes import nodes_command
from chainkit_indexer.cli.quarantine import quarantine_group
from chainkit_indexer.cli.repair import migrate_command, rewind_command, verify_command
from chainkit_indexer.cli.replay import replay_command

require_packages("sqlalchemy", "pyarrow")


@click.group(cls=CompleteGroup)
def index() -> None:
    """Follow the chain and keep signed envelopes.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """


for _command in (
    run_command,
    step_command,
    status_command,
    history_command,
    quarantine_group,
    nodes_command,
    export_command,
    verify_command,
    rewind_command,
    replay_command,
    migrate_command,
    backup_command,
    restore_command,
):
    index.add_command(_command)
