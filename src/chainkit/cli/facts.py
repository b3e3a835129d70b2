"""Lines that commands print alike: a name and what it is, within 100 columns."""

from __future__ import annotations

import textwrap
from typing import Final

import click

LABEL_WIDTH: Final = 16
"""Columns before what a fact says."""

LINE_WIDTH: Final = 100
"""Columns that any terminal is taken to have."""


def echo_fact(name: str, value: str) -> None:
    """Print a name and what it is, wrapped to fit 100 columns."""
    first, *rest = textwrap.wrap(value, LINE_WIDTH - LABEL_WIDTH, break_on_hyphens=False) or [""]
    # At least one space, also behind a long name.
    click.echo(f"{name:<{LABEL_WIDTH - 1}} {first}".rstrip())
    for line in rest:
        click.echo(" " * LABEL_WIDTH + line)
