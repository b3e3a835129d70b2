"""``chainkit audit``: the auditor's commands. The only place here that reads options."""

from __future__ import annotations

import click

from chainkit.terminal.command import CompleteGroup, require_packages
from chainkit_jobs.cli.bundle import bundle_command
from chainkit_jobs.cli.cost import cost_command
from chainkit_jobs.cli.export_chain import export_chain_command
from chainkit_jobs.cli.import_chain import import_chain_command
from chainkit_jobs.cli.pack_environment import pack_environment_command
from chainkit_jobs.cli.reconcile import reconcile_command
from chainkit_jobs.cli.report_misbehavior import report_misbehavior_command
from chainkit_jobs.cli.verify_chain import verify_chain_command

require_packages("pyspark", "pyarrow", "matplotlib", "jinja2")


@click.group(cls=CompleteGroup)
def audit() -> None:
    """Compare what nodes serve with what the chain holds.

    \b
    Example:
      chainkit audit reconcile --chain chain/ --node node-a/ --node node-b/ --out audit/
    """


for _command in (
    export_chain_command,
    import_chain_command,
    verify_chain_command,
    reconcile_command,
    report_misbehavior_command,
    bundle_command,
    cost_command,
    pack_environment_command,
):
    audit.add_command(_command)
