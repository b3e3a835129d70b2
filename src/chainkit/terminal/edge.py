"""Options of a service that Python's gRPC server or Envoy serves."""

from __future__ import annotations

from dataclasses import dataclass

import click

from chainkit.terminal.options import gathered, several


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Which server takes the calls."""

    name: str
    """grpc or envoy."""
    is_printed: bool


edge_options = several(
    click.option(
        "--edge",
        "name",
        type=click.Choice(["grpc", "envoy"]),
        default="grpc",
        show_default=True,
        envvar="CHAINKIT_EDGE",
        show_envvar=True,
        help="The server of calls: gRPC's in Python, or Envoy around this process, which takes "
        "less processor time, bounds connections, and answers browsers (gRPC-Web).",
    ),
    click.option(
        "--print-edge",
        "is_printed",
        is_flag=True,
        help="Print Envoy's configuration for the other options, and end.",
    ),
    gathered(EdgeOptions, "edge"),
)
"""Decorator: which server takes the calls; the command takes EdgeOptions."""
