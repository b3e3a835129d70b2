"""``backups grant``: an upload URL for one file."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Final

import click

from chainkit.service.upload_grant import (
    ID_LENGTH,
    Grant,
    read_base_url,
    read_key,
    upload_url,
)
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import file_option

_MOST_HOURS: Final = 30 * 24


@click.command("grant", cls=CompleteCommand)
@file_option(
    "--grant-key",
    "grant_key_path",
    "CHAINKIT_GRANT_KEY",
    "The service's key, 64 hex digits.",
    required=True,
)
@click.option(
    "--url",
    envvar="CHAINKIT_BACKUPS_URL",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="Where clients reach the service, such as https://backups.example.",
)
@click.option(
    "--hours",
    type=click.IntRange(1, _MOST_HOURS),
    default=24,
    show_default=True,
    help="How long the upload may wait.",
)
def grant_command(grant_key_path: Path, url: str, hours: int) -> None:
    """Print a URL to which one file may be uploaded, once.

    No server is asked: the service knows the URL by its key. Everybody who has the URL may upload.

    \b
    Example:
      chainkit backups grant --grant-key grant.key --url https://backups.example
    """
    grant = Grant(secrets.token_bytes(ID_LENGTH), int(time.time()) + hours * 3600)
    click.echo(upload_url(read_base_url(url, "--url"), read_key(grant_key_path), grant))
