"""``chainkit audit pack-environment``."""

from __future__ import annotations

from pathlib import Path

import click

from chainkit.terminal.command import CompleteCommand
from chainkit_jobs.cli.options import out_option
from chainkit_jobs.spark.environment import pack_environment


@click.command("pack-environment", cls=CompleteCommand)
@out_option("Archive (.tar.gz)")
def pack_environment_command(out: Path) -> None:
    """Pack this Python and the audit's packages for the workers of a Spark cluster.

    The workers then need no Python of their own; Spark brings PySpark. See docs/cluster.md.

    \b
    Example:
      chainkit audit pack-environment --out environment.tar.gz
    """
    size = pack_environment(out)
    click.echo(f"{out}: {size / 2**20:.0f} MiB")
