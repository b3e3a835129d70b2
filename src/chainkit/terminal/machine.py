"""Findings about a machine, and what a service is given there (``chainkit doctor``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from chainkit.terminal.options import file_option, gathered, several


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a role needs."""

    role: str
    name: str
    present: bool
    detail: str
    """The version or state found, or how to get what is missing."""


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """The files and servers of a node; a part that is not given is not looked at."""

    rpc_urls: tuple[str, ...]
    deployment_path: Path | None
    database: str | None
    record_path: Path | None
    certificate_path: Path | None
    key_path: Path | None


service_options = several(
    click.option(
        "--rpc",
        "rpc_urls",
        envvar="CHAINKIT_RPC",
        show_envvar=True,
        multiple=True,
        metavar="URL",
        help="JSON-RPC endpoint of the node, which is asked; give all of them.",
    ),
    file_option(
        "--deployment", "deployment_path", "CHAINKIT_DEPLOYMENT", "The node's deployment record."
    ),
    click.option(
        "--database",
        envvar="CHAINKIT_DATABASE",
        show_envvar=True,
        metavar="FILE|URL",
        help="The node's database: the disk of a SQLite file is looked at.",
    ),
    file_option(
        "--sequence-record",
        "record_path",
        "CHAINKIT_SEQUENCE_RECORD",
        "The node's sequence record.",
    ),
    file_option(
        "--tls-certificate",
        "certificate_path",
        "CHAINKIT_TLS_CERTIFICATE",
        "The node's certificate.",
    ),
    file_option("--tls-key", "key_path", "CHAINKIT_TLS_KEY", "The certificate's key."),
    gathered(ServiceFiles, "given"),
)
"""Decorator: what a node is given; the command takes a ServiceFiles."""
