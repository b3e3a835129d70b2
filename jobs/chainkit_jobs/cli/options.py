"""What the audit's commands have in common: options and exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

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


master_option = click.option(
    "--master", default="local[*]", show_default=True, metavar="URL", help="Spark master."
)


def _trusted_hash(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> bytes | None:
    if text is None:
        return None
    digits = text.strip().lower().removeprefix("0x")
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        raise click.BadParameter(f"expected a block hash, 0x and 64 hex digits, got {text!r}")
    return bytes.fromhex(digits)


def trust_option(required: bool = False) -> Callable[[Any], Any]:
    """Return the option ``--trust``, whose value is 32 bytes, or None where it is not given."""
    return click.option(
        "--trust",
        "trusted_hash",
        required=required,
        metavar="HASH",
        callback=_trusted_hash,
        help="Hash of the export's last block, from a source that you trust: all of the chain "
        "export is proved from it.",
    )
