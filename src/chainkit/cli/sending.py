"""The options of every command that can send a transaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from chainkit.transactions import RECEIPT_TIMEOUT_SECONDS

broadcast_option = click.option(
    "--broadcast", is_flag=True, help="Sign and send; without it nothing is sent."
)
timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0),
    default=RECEIPT_TIMEOUT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until a transaction is mined.",
)


def sender_option(whose: str) -> Callable[[Any], Any]:
    """Return the option for the key that signs; unlike ``keystore_option``, it is not required."""
    return click.option(
        "--keystore",
        "keystore_path",
        envvar="CHAINKIT_KEYSTORE",
        show_envvar=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help=f"Encrypted key of {whose}, for --broadcast.",
    )
