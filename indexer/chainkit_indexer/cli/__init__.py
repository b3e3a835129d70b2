"""``chainkit index``: the node operator's commands. The only place here that reads options."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages("sqlalchemy", "pyarrow")

_FOLLOW: Final = "chainkit_indexer.cli.follow"
_BACKUP: Final = "chainkit_indexer.cli.backup"
_INSPECT: Final = "chainkit_indexer.cli.inspect"
_REPAIR: Final = "chainkit_indexer.cli.repair"

_COMMANDS: Final = {
    "run": LazyCommand(
        _FOLLOW, "run_command", "Follow the chain until a signal stops it (SIGINT or SIGTERM)."
    ),
    "step": LazyCommand(
        _FOLLOW, "step_command", "Do one bounded piece of work and print its result."
    ),
    "status": LazyCommand(
        _INSPECT,
        "status_command",
        "Show the cursor, the final block, the stored envelopes, and the reorgs.",
    ),
    "history": LazyCommand(
        _INSPECT,
        "history_command",
        "Show the history of a sequence id: its payloads, its reorgs, and the envelope served now.",
    ),
    "quarantine": LazyCommand(
        "chainkit_indexer.cli.quarantine",
        "quarantine_group",
        "Show payloads that were posted but are never served, with the reason.",
    ),
    "nodes": LazyCommand(
        "chainkit_indexer.cli.nodes",
        "nodes_command",
        "List the registry's nodes with their keys and status, at a block or through time.",
    ),
    "export": LazyCommand(
        "chainkit_indexer.cli.export",
        "export_command",
        "Write envelopes, quarantine, journal and registry as Parquet, pinned to the cursor's "
        "block.",
    ),
    "verify": LazyCommand(
        _REPAIR,
        "verify_command",
        "Compare the stored rows with the chain again; ends with 1 where anything differs.",
    ),
    "prove": LazyCommand(
        "chainkit_indexer.cli.prove",
        "prove_command",
        "Prove stored blocks that rest on an endpoint's word; ends with 1 where anything differs.",
    ),
    "rewind": LazyCommand(
        _REPAIR,
        "rewind_command",
        "Take back everything above a block, as a reorg does, so that the next run reads it again.",
    ),
    "replay": LazyCommand(
        "chainkit_indexer.cli.replay",
        "replay_command",
        "Send transactions that reorgs dropped again, in their original order; a dry run first.",
    ),
    "migrate": LazyCommand(
        _REPAIR,
        "migrate_command",
        "Bring a database of an older chainkit up to date, with its data in place.",
    ),
    "backup": LazyCommand(
        _BACKUP,
        "backup_command",
        "Copy the database to a new file; the indexer may run.",
    ),
    "restore": LazyCommand(
        _BACKUP,
        "restore_command",
        "Make a node's database of a backup.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def index() -> None:
    """Follow the chain and keep signed envelopes.

    \b
    Example:
      chainkit index run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
