"""Options and exit codes that the audit's commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from chainkit.errors import ConfigurationError
from chainkit.exports import MANIFEST_NAME
from chainkit.terminal.options import block_hash

EXIT_FINDINGS: Final = 1
EXIT_NOT_COMPARED: Final = 2


def out_option(what: str) -> Callable[[Any], Any]:
    """Return the option ``--out``; ``what`` is written there."""
    return click.option(
        "--out",
        "out",
        required=True,
        metavar="PATH",
        type=click.Path(path_type=Path),
        help=f"{what} to write; it must not exist yet.",
    )


def check_export_folder(path: Path) -> None:
    """Raise ConfigurationError, with what to give, for a path beside the folder of an export."""
    subject, expected = f"export {path}", "the folder of one export"
    if path.name == MANIFEST_NAME and path.is_file():
        raise ConfigurationError(subject, expected, f"its manifest: give {path.parent}")
    if not path.is_dir():
        return  # who opens it says so
    if (path / MANIFEST_NAME).exists():
        return
    below = sorted(each.parent.name for each in path.glob(f"*/{MANIFEST_NAME}"))
    if below:
        words = ", ".join(str(path / name) for name in below[:3])
        raise ConfigurationError(subject, expected, f"a folder of exports: give {words}")
    if path.parent.joinpath(MANIFEST_NAME).exists():
        got = f"a folder within an export: give {path.parent}"
        raise ConfigurationError(subject, expected, got)


master_option = click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Spark master."
)


def trust_option(required: bool = False) -> Callable[[Any], Any]:
    """Return the option ``--trust``, whose value is 32 bytes, or None where it is not given."""
    return click.option(
        "--trust",
        "trusted_hash",
        required=required,
        metavar="HASH",
        callback=block_hash,
        help="Hash of the export's last block, from a source that you trust: all of the chain "
        "export is proved from it.",
    )
