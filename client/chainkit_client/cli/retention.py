"""``client retention``: for how long nodes keep one's texts."""

from __future__ import annotations

from dataclasses import replace

import click

from chainkit.protocol.retention import LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact
from chainkit.terminal.options import echo_json, json_option
from chainkit_client.cli.home import Home, home_options


@click.command("retention", cls=CompleteCommand)
@click.option(
    "--days",
    type=click.IntRange(LEAST_RETENTION_DAYS, MAXIMUM_RETENTION_DAYS),
    metavar="DAYS",
    help="Keep texts for so long, within the gateway's bounds.",
)
@click.option("--default", "is_default", is_flag=True, help="Let the gateway decide.")
@home_options
@json_option
def retention_command(days: int | None, is_default: bool, home: Home, as_json: bool) -> int:
    """Show or change for how long nodes keep the texts that you send from now on.

    Members who read later do not get them. It asks nobody.

    \b
    Example:
      chainkit client retention --days 7 --home alice
    """
    if days is not None and is_default:
        raise click.UsageError("--days and --default exclude each other")
    settings = home.read_settings()
    if days is not None or is_default:
        settings = replace(settings, retention_days=days)
        home.write_settings(settings)
    kept = settings.retention_days
    if as_json:
        echo_json({"retention_days": kept})
    else:
        echo_fact("retention", "the gateway decides" if kept is None else f"{kept} days")
    return 0
