"""``chainkit registry``: read the nodes, and change them without sending anything by accident."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup

_READING: Final = "chainkit.cli.registry.reading"
_HISTORY: Final = "chainkit.cli.registry.history"
_DESIRED: Final = "chainkit.cli.registry.desired"
_CHANGES: Final = "chainkit.cli.registry.changes"
_DRY_RUN: Final = "a dry run without --broadcast or --propose."

_COMMANDS: Final = {
    "list": LazyCommand(_READING, "list_nodes", "List all nodes, enabled or not, at a block."),
    "show": LazyCommand(_READING, "show", "Show one node with its holder and its signing key."),
    "history": LazyCommand(
        _HISTORY,
        "history",
        "Show the history of the registry, or of one node, by block and transaction.",
    ),
    "diff": LazyCommand(
        _DESIRED,
        "diff",
        "Compare the nodes of the chain with those in a YAML file; exits 1 where they differ.",
    ),
    "plan": LazyCommand(
        _DESIRED,
        "plan",
        "Draft the calls that make the registry what a YAML file says; the file is that of `diff`.",
    ),
    "add": LazyCommand(_CHANGES, "add", f"Add an enabled node; {_DRY_RUN}"),
    "enable": LazyCommand(_CHANGES, "enable", f"Enable a disabled node; {_DRY_RUN}"),
    "disable": LazyCommand(_CHANGES, "disable", f"Disable an enabled node; {_DRY_RUN}"),
    "transfer": LazyCommand(_CHANGES, "transfer", f"Give a node to another holder; {_DRY_RUN}"),
    "set-url": LazyCommand(_CHANGES, "set_url", f"Change the URL of your node; {_DRY_RUN}"),
    "open-updates": LazyCommand(
        _CHANGES, "open_updates", f"Let operators change their nodes' URLs; {_DRY_RUN}"
    ),
    "close-updates": LazyCommand(
        _CHANGES, "close_updates", f"Keep operators from changing their nodes' URLs; {_DRY_RUN}"
    ),
    "hand-over": LazyCommand(
        _CHANGES, "hand_over", f"Offer the registry to a new owner; {_DRY_RUN}"
    ),
    "accept": LazyCommand(_CHANGES, "accept", f"Accept the registry that was offered; {_DRY_RUN}"),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def registry() -> None:
    """Read and change the registry of nodes; changes are dry runs until --broadcast or --propose.

    \b
    Example:
      chainkit registry list --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
