"""Warns of nodes that do not answer, before they are added."""

from __future__ import annotations

from collections.abc import Sequence

import click

from chainkit.contracts.registry import find_silent
from chainkit.text.printable import printable

check_url_option = click.option(
    "--no-check-url",
    "check_url",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Do not ask a new node's URL for an answer; one that is silent is only warned of.",
)


def warn_of_silence(http_addresses: Sequence[str]) -> None:
    """Say on standard error which HTTP addresses do not answer, and why."""
    for url, reason in find_silent(http_addresses).items():
        click.echo(f"warning: {printable(url)} does not answer: {reason}", err=True)
