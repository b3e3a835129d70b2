"""The question for a proposal's hash, before an owner signs or approves it."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from chainkit.cli.change.proposal_output import moment
from chainkit.council.proposal import LONGEST_DAYS, SECONDS_PER_DAY, Proposal
from chainkit.council.signing import LOCAL_CHAIN_IDS
from chainkit.errors import ConfigurationError

CONFIRMED_DIGITS: Final = 16
"""Hex digits of the hash that a signer types, so that nobody signs by Enter.

The typed digits show that the signer looked, not that the hash is right: a drafter can make two
proposals whose hashes begin alike, and only all 64 digits tell them apart.
"""


digits_option = click.option(
    "--digits-from-pipe",
    "takes_pipe",
    is_flag=True,
    help="For tests on a local chain: take the digits without a terminal, and warn.",
)


def check_expiry(proposal: Proposal) -> None:
    """Raise ConfigurationError for a proposal that expired, or does not within the longest time."""
    now, expires = int(time.time()), proposal.grounds.expires
    if now > expires:
        got = f"one that expired {moment(expires)}"
        raise ConfigurationError("proposal", f"one that may be signed on {moment(now)}", got)
    if expires > now + (LONGEST_DAYS + 1) * SECONDS_PER_DAY:
        expected = f"one that expires within {LONGEST_DAYS} days of {moment(now)}"
        raise ConfigurationError("proposal", expected, f"one that expires {moment(expires)}")


def confirm(proposal: Proposal, takes_pipe: bool, act: str = "sign") -> None:
    """Ask for the hash before an ``act``: Enter, or yes to everything, signs nothing.

    Raises ConfigurationError for another hash, and where no terminal answers, unless it is a local
    chain's proposal and ``takes_pipe``.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        _check_pipe(proposal.transaction.chain_id, takes_pipe)
    name = "SafeTx hash" if proposal.fees is None else "transaction's hash"
    question = (
        f"\nCompare all 64 digits of the {name} with another owner or your device."
        f"\nTo {act}, type the first {CONFIRMED_DIGITS} of them, or all: "
    )
    # The question ends with a blank: else click would write the blank to standard output.
    typed = click.prompt(question, default="", show_default=False, prompt_suffix="", err=True)
    digits = proposal.hash.hex()
    if typed.strip().lower().removeprefix("0x") not in (digits, digits[:CONFIRMED_DIGITS]):
        expected = f"its first {CONFIRMED_DIGITS} digits, or all {len(digits)}"
        raise ConfigurationError(name, expected, "others")


def _check_pipe(chain_id: int, takes_pipe: bool) -> None:
    """Refuse to be answered by anything but a person at a terminal, unless nothing is at stake."""
    if not takes_pipe:
        got = "a pipe or a file, whose digits nobody compared"
        raise ConfigurationError("answer to the question for the hash", "a terminal", got)
    if chain_id not in LOCAL_CHAIN_IDS:
        expected = f"a local chain ({' or '.join(map(str, LOCAL_CHAIN_IDS))})"
        raise ConfigurationError("--digits-from-pipe", expected, f"chain id {chain_id}")
    click.echo("WARNING: THE DIGITS COME FROM A PIPE: NOBODY COMPARES THE HASH", err=True)
