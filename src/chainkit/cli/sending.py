"""What every command that can send a transaction shares: its options, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from chainkit.cli.options import hex0x, reference_as_json

if TYPE_CHECKING:
    from chainkit.transactions import Receipt

NOT_SENT: Final = "nothing was sent; add --broadcast --keystore FILE to send"

TIMEOUT_SECONDS: Final = 120.0
"""``chainkit.transactions.RECEIPT_TIMEOUT_SECONDS``, which web3 would come with."""

broadcast_option = click.option(
    "--broadcast", is_flag=True, help="Sign and send; without it nothing is sent."
)
timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0),
    default=TIMEOUT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until a transaction is mined.",
)


def sent_json(receipt: Receipt | None) -> dict[str, Any]:
    """Return what became of a transaction, for a script."""
    if receipt is None:
        return {"sent": False}
    return {
        "sent": True,
        "transaction_hash": hex0x(receipt.transaction_hash),
        "mined_in": reference_as_json(receipt.block.reference),
    }
