"""The option of a service that prints Envoy's configuration."""

from __future__ import annotations

import click

print_edge_option = click.option(
    "--print-edge",
    "is_edge_printed",
    is_flag=True,
    help="Print Envoy's configuration for the other options, and end.",
)
"""Decorator: the command takes ``is_edge_printed``."""
