"""Options and exit codes that the audit's commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

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
