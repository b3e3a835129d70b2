"""``backups serve``: the storage service over HTTP."""

from __future__ import annotations

import asyncio
import importlib.util
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.errors import ConfigurationError
from chainkit.extras import how_to_install
from chainkit.service.log_lines import configure_logging
from chainkit.service.upload_grant import read_base_url, read_key
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import (
    Option,
    file_option,
    gathered,
    log_format_option,
    monitor_option,
)
from chainkit.text.hosts import is_loopback
from chainkit_backups.handlers import Terms
from chainkit_backups.place import Place
from chainkit_backups.service import Backups, serve
from chainkit_backups.store import Store
from chainkit_backups.types import DEFAULT_SECONDS, Kind, Limits

DEFAULT_ADDRESS: Final = "127.0.0.1:5052"
_MIB: Final = 1 << 20
_MOST_MIB: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of ``backups serve``."""

    folder: Path
    bucket: str | None
    s3_url: str | None
    address: str
    public_url: str | None
    proxies: tuple[str, ...]
    grant_key_path: Path | None
    keep_seconds: int
    seconds_after_download: int | None
    patience: int
    file_mib: int
    total_mib: int
    open_file_mib: int
    open_address_mib: int
    open_total_mib: int
    listen: str | None
    log_format: str


def _mib_option(flag: str, default: int, purpose: str, least: int = 1) -> Option:
    return click.option(
        flag,
        flag.removeprefix("--").replace("-", "_"),
        type=click.IntRange(least, _MOST_MIB),
        default=default,
        show_default=True,
        metavar="MIB",
        help=purpose,
    )


@click.command("serve", cls=CompleteCommand)
@click.option(
    "--folder",
    envvar="CHAINKIT_BACKUPS_FOLDER",
    show_envvar=True,
    required=True,
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files are kept; made where there is none. With --bucket, where uploads wait.",
)
@click.option(
    "--bucket",
    envvar="CHAINKIT_BACKUPS_BUCKET",
    show_envvar=True,
    metavar="NAME[/PREFIX]",
    help="Keep whole files in this bucket of an S3-compatible store. Its keys are read as AWS' own "
    "tools read them: AWS_ACCESS_KEY_ID and others.",
)
@click.option(
    "--s3-url",
    envvar="CHAINKIT_BACKUPS_S3_URL",
    show_envvar=True,
    metavar="URL",
    help="The store of --bucket, where it is not AWS.",
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where clients connect, in plain text; other machines only with --url. Port 0 takes a "
    "free one.",
)
@click.option(
    "--url",
    "public_url",
    envvar="CHAINKIT_BACKUPS_URL",
    show_envvar=True,
    metavar="URL",
    help="Where clients reach the service, such as https://backups.example: download URLs begin "
    "with it. Without it, the address itself.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="IP",
    help="A proxy in front of the service, whose last address in X-Forwarded-For is believed. May "
    "be repeated.",
)
@file_option(
    "--grant-key",
    "grant_key_path",
    "CHAINKIT_GRANT_KEY",
    "Key that a gateway has as well, 64 hex digits: its clients upload with its grants.",
)
@click.option(
    "--keep-seconds",
    type=click.IntRange(60, 30 * 86_400),
    default=DEFAULT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long a file is kept.",
)
@click.option(
    "--seconds-after-download",
    type=click.IntRange(0, 30 * 86_400),
    metavar="SECONDS",
    help="How long a file is kept once its last byte was sent; without it, as long as any.",
)
@click.option(
    "--patience",
    type=click.IntRange(1, 600),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="The time in which a request must begin, and which a transfer may take beside that of its "
    "bytes at 8 KiB a second.",
)
@_mib_option("--file-mib", 2048, "The most of one file with a grant.")
@_mib_option("--total-mib", 20_480, "The most of all files with grants; 0 takes none.", 0)
@_mib_option("--open-file-mib", 128, "The most of one file without a grant.")
@_mib_option("--open-address-mib", 512, "The most of one address's files without a grant.")
@_mib_option("--open-total-mib", 5120, "The most of all files without a grant; 0 takes none.", 0)
@monitor_option
@log_format_option
@gathered(_Options, "options")
def serve_command(options: _Options) -> None:
    """Store encrypted files for some days, until a signal stops it (SIGINT or SIGTERM).

    XIP-31's POST /backups and GET /backups/ID, and for today's clients POST /upload and
    GET /files/ID. Nothing is listed or changed; who has a file's id may read it.

    \b
    Example:
      chainkit backups serve --folder backups --url https://backups.example --proxy 127.0.0.1
      chainkit backups serve --folder incoming --bucket history --url https://backups.example
    """
    configure_logging(options.log_format)
    public_url = _public_url(options)
    proxies = frozenset(map(_ip, options.proxies))
    key = None if options.grant_key_path is None else read_key(options.grant_key_path)
    store = Store.open(options.folder, time.time, _place(options))
    try:
        asyncio.run(
            serve(
                Backups(
                    store=store,
                    limits=_limits(options),
                    terms=Terms(
                        grant_key=key,
                        keep_seconds=options.keep_seconds,
                        seconds_after_download=options.seconds_after_download,
                        patience=options.patience,
                    ),
                    address=options.address,
                    public_url=public_url,
                    proxies=proxies,
                    listen=options.listen,
                )
            )
        )
    finally:
        store.close()


def _place(options: _Options) -> Callable[[], Place] | None:
    """Return what connects to the bucket, None where files are in the folder."""
    if options.bucket is None:
        if options.s3_url is not None:
            raise click.UsageError("--s3-url needs --bucket")
        return None
    if importlib.util.find_spec("botocore") is None:
        raise ConfigurationError(
            "--bucket", "the package botocore", f"none: {how_to_install('s3')}"
        )
    from chainkit_backups.bucket import MOST_FILE_BYTES, open_bucket

    if max(options.file_mib, options.open_file_mib) * _MIB > MOST_FILE_BYTES:
        expected = f"at most {MOST_FILE_BYTES // _MIB} MiB of one file with --bucket"
        raise ConfigurationError("--file-mib", expected, "more")
    return open_bucket(options.bucket, options.s3_url)


def _limits(options: _Options) -> dict[Kind, Limits]:
    return {
        Kind.GRANTED: Limits(options.file_mib * _MIB, 0, options.total_mib * _MIB),
        Kind.OPEN: Limits(
            options.open_file_mib * _MIB,
            options.open_address_mib * _MIB,
            options.open_total_mib * _MIB,
        ),
    }


def _public_url(options: _Options) -> str | None:
    if options.public_url is None:
        # Other machines would be sent to an address that is not the service's.
        if not is_loopback(options.address):
            expected = "an address of this machine alone, or --url"
            raise ConfigurationError("--http", expected, options.address)
        return None
    return read_base_url(options.public_url, "--url")


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise ConfigurationError("--proxy", "an IP address", text) from error
