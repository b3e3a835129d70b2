"""Options of every command that can send a transaction, and the words for its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click

from chainkit.chain import Endpoint
from chainkit.chain.sending import RECEIPT_TIMEOUT_SECONDS, Sending, SignedTransaction
from chainkit.cli.change.signers import SignerOptions, signer_options
from chainkit.council.signing import transaction_cost
from chainkit.errors import MalformedData
from chainkit.terminal.facts import echo_fact, shown_to_people
from chainkit.terminal.options import Option, several
from chainkit.text.ether import MAX_COST, ether_text, ether_words, parse_ether
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json
from chainkit.types import Receipt

NOT_SENT: Final = "nothing was sent; add --broadcast --keystore FILE to send"


def _wei(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    try:
        return parse_ether(text)
    except MalformedData as error:
        raise click.BadParameter(f"expected {error.expected}, got {error.got}") from error


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
max_cost_option = click.option(
    "--max-cost",
    "max_cost",
    default=ether_text(MAX_COST),
    show_default=True,
    metavar="ETHER",
    callback=_wei,
    help="Send or draft no transaction whose gas could cost more.",
)


def signing_options(whose: str) -> Option:
    """Return the options for the signer (``signer_options``), the cost and the wait."""
    return several(signer_options(whose), max_cost_option, timeout_option)


@dataclass(frozen=True, slots=True)
class SendingOptions:
    """Whether a transaction is sent, its signer, and how it is sent."""

    broadcast: bool
    signing: SignerOptions
    max_cost: int
    """Wei."""
    timeout_seconds: float

    def open(self, endpoint: Endpoint, as_json: bool) -> Sending:
        """Return how transactions are sent; each transaction is printed for a person first."""
        announce = partial(echo_sending, as_json=as_json)
        return Sending(endpoint, self.max_cost, self.timeout_seconds, announce)


def echo_sending(signed: SignedTransaction, as_json: bool) -> None:
    """Print what is about to be sent; on standard error where standard output is a script's."""
    with shown_to_people(as_json):
        echo_fact("costs", f"at most {ether_words(transaction_cost(signed.raw))}")
        echo_fact("sending", hex0x(signed.hash))


def sent_json(receipt: Receipt | None) -> dict[str, Any]:
    """Return what became of a transaction, for a script."""
    if receipt is None:
        return {"sent": False}
    return {
        "sent": True,
        "transaction_hash": hex0x(receipt.transaction_hash),
        "mined_in": reference_as_json(receipt.block.reference),
    }
