"""``chainkit audit``: the auditor's commands. The only place here that reads options."""

from __future__ import annotations

from typing import Final

import click

from chainkit.terminal.command import LazyCommand, LazyGroup, require_packages

require_packages(
    *("pyspark", "pyarrow", "pandas", "matplotlib", "jinja2", "packaging", "grpc", "google.rpc")
)


def _command(name: str, sentence: str) -> LazyCommand:
    return LazyCommand(f"chainkit_jobs.cli.{name}", f"{name}_command", sentence)


_COMMANDS: Final = {
    "export-chain": _command(
        "export_chain",
        "Write headers, transactions, receipts and logs to Parquet, pinned to the last block.",
    ),
    "export-node": _command(
        "export_node", "Write what a node answers over its public API to Parquet, to audit it."
    ),
    "import-chain": _command(
        "import_chain",
        "Make a chain export of files that another tool wrote, if nothing is wrong with them.",
    ),
    "verify-chain": _command(
        "verify_chain", "Prove a chain export, to the byte, from the hash of its last block."
    ),
    "reconcile": _command(
        "reconcile", "Compare the exports of two or more nodes with a chain export."
    ),
    "report-misbehavior": _command(
        "report_misbehavior",
        "Sign a report of type BLOCKCHAIN_INCONSISTENCY that carries a finding's evidence.",
    ),
    "bundle": _command(
        "bundle",
        "Write the evidence about each accused node so that it can be checked without the auditor.",
    ),
    "cost": _command(
        "cost", "Say what a chain cost, by contract, function, payer, hour, day and payload size."
    ),
    "pack-environment": _command(
        "pack_environment",
        "Pack this Python and the audit's packages for the workers of a Spark cluster.",
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def audit() -> None:
    """Compare what nodes serve with what the chain holds.

    \b
    Example:
      chainkit audit reconcile --chain chain/ --node node-a/ --node node-b/ --out audit/
    """
