"""``chainkit node``: the operator's node for others. The only place here that reads options."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages("grpc", "grpc_health", "grpc_reflection", "sqlalchemy")

_COMMANDS: Final = {
    "run": LazyCommand(
        "chainkit_node.cli.run",
        "run_command",
        "Follow the chain, serve readers and originate for payers, until a signal stops it.",
    ),
    "serve": LazyCommand(
        "chainkit_node.cli.serve",
        "serve_command",
        "Serve what `node run` stores, from one more process on the same PostgreSQL.",
    ),
    "status": LazyCommand(
        "chainkit_node.cli.status",
        "status_command",
        "Show originators, peers, gaps, reorgs and reports, and whether anything needs attention.",
    ),
    "verify": LazyCommand(
        "chainkit_node.cli.verify",
        "verify_command",
        "Verify the envelopes of all originators that the database holds; ends with 1 for a fault.",
    ),
    "prune": LazyCommand(
        "chainkit_node.cli.prune",
        "prune_command",
        "Delete envelopes that have expired and that attested payer reports cover.",
    ),
    "watch": LazyCommand(
        "chainkit_node.cli.watch",
        "watch_command",
        "Show all nodes of a registry: who answers, who is accused, and who holds how much.",
    ),
    "refused": LazyCommand(
        "chainkit_node.cli.refused",
        "refused_command",
        "List identity updates that were refused, the newest first, each with the rule it breaks.",
    ),
    "reports": LazyCommand(
        "chainkit_node.cli.reports",
        "reports_command",
        "List the reports of misbehavior that this node hosts, the oldest first.",
    ),
    "payer-reports": LazyCommand(
        "chainkit_node.cli.payer_reports",
        "payer_reports_command",
        "Show the payer reports that this node holds, export them, and prove a payer's total.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def node() -> None:
    """Serve envelopes to readers, and originate what payers publish.

    \b
    Example:
      chainkit node run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore node.json --password-file password.txt --database node.db
    """
