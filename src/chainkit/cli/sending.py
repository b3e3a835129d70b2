"""The options of every command that can send a transaction."""

from __future__ import annotations

from typing import Final

import click

from chainkit.transactions import RECEIPT_TIMEOUT_SECONDS

NOT_SENT: Final = "nothing was sent; add --broadcast --keystore FILE to send"

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
