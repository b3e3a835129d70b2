"""Options and exit codes that the audit's commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from chainkit.errors import ConfigurationError
from chainkit.exports import MANIFEST_NAME
from chainkit.terminal.options import block_hash, path_option

EXIT_FINDINGS: Final = 1
EXIT_NOT_COMPARED: Final = 2


def out_option(what: str) -> Callable[[Any], Any]:
    """Return the option ``--out``; ``what`` is written there."""
    purpose = f"{what} to write; it must not exist yet."
    return path_option("--out", "out", "PATH", purpose, required=True)


def check_export_folder(path: Path) -> None:
    """Raise ConfigurationError, with what to give, for a path beside the folder of an export."""
    _check_folder(path, MANIFEST_NAME, f"export {path}", ("the folder of one export", "exports"))


def check_audit_folder(path: Path) -> None:
    """Raise ConfigurationError, with what to give, for a path beside the output of an audit."""
    _check_folder(path, "summary.json", f"audit {path}", ("the folder of one audit", "audits"))


def _check_folder(path: Path, marker: str, subject: str, words: tuple[str, str]) -> None:
    """Check that folders contain ``marker``; ``words`` are the folder's singular and plural."""
    expected, several = words
    if path.joinpath(marker).exists():
        return
    if path.parent.joinpath(marker).exists() and path.exists():
        kind = "a file" if path.is_file() else "a folder"
        raise ConfigurationError(subject, expected, f"{kind} within one: give {path.parent}")
    below = sorted(each.parent.name for each in path.glob(f"*/{marker}"))
    if below:
        names = ", ".join(str(path / name) for name in below[:3])
        raise ConfigurationError(subject, expected, f"a folder of {several}: give {names}")


chain_option = path_option(
    "--chain",
    "chain_path",
    "DIR",
    "Chain export, as `chainkit audit export-chain` writes it.",
    required=True,
)
master_option = click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Spark master."
)


def trust_option(required: bool = False) -> Callable[[Any], Any]:
    """Return the option ``--trust``, whose value is 32 bytes, or None where it is missing."""
    return click.option(
        "--trust",
        "trusted_hash",
        required=required,
        metavar="HASH",
        callback=block_hash,
        help="Hash of the export's last block, from a source that you trust: all of the chain "
        "export is proved from it.",
    )
