"""A proposal on a screen: if the proposal is longer than the screen, a summary follows it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, Final

import click

from chainkit.cli.change.proposal_options import Reading
from chainkit.cli.change.proposal_output import (
    argument_words,
    echo_cautions,
    echo_proposal,
    echo_signed_hash,
    echo_signers,
    echo_unasked,
    moment,
)
from chainkit.contracts.interface import render
from chainkit.council.calls import Call
from chainkit.council.proposal.cautions import offline_cautions
from chainkit.terminal.facts import LABEL_WIDTH, LINE_WIDTH, echo_fact
from chainkit.text.counting import counted

SCREEN_LINES: Final = 24
"""Lines that any terminal is taken to have."""

_MOST_CALLS: Final = 8
_MOST_CAUTIONS: Final = 3
_LONGEST_VALUE: Final = 42
"""Characters of an argument: an address is whole."""


class Screen:
    """Counts the printed lines of a proposal: the first may be out of sight at the end."""

    def __init__(self, reading: Reading, cautions: Sequence[str]) -> None:
        """Take what the summary is of; ``cautions`` are what a reader should stop at."""
        self._reading = reading
        self._cautions = cautions
        self._lines = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the lines that are printed within the block."""
        text = io.StringIO()
        try:
            with redirect_stdout(text):
                yield
        finally:
            self._lines += text.getvalue().count("\n")
            click.echo(text.getvalue(), nl=False)

    def end(self) -> None:
        """Print the summary, shorter than a screen, if what was printed is longer than one."""
        if self._lines <= SCREEN_LINES:
            return
        proposal = self._reading.proposal
        count = len(proposal.calls)
        click.echo()
        place = f"on chain id {proposal.transaction.chain_id}, nonce {proposal.nonce}"
        echo_fact("in short", _one_line(f"{counted(count, 'call')} of {proposal.account} {place}"))
        for caution in self._cautions[:_MOST_CAUTIONS]:
            echo_fact("  caution", _one_line(caution))
        _echo_rest(len(self._cautions) - _MOST_CAUTIONS, "caution")
        for call in proposal.calls[:_MOST_CALLS]:
            echo_fact("  call", _one_line(_short(call)))
        _echo_rest(count - _MOST_CALLS, "call")
        echo_fact("expires", moment(proposal.grounds.expires))
        echo_signed_hash(proposal)


def echo_reading(reading: Reading, *, names_signers: bool) -> None:
    """Print a proposal from its file and the member's own files; no chain is asked."""
    cautions = offline_cautions(reading.proposal, reading.council)
    screen = Screen(reading, cautions)
    with screen.counted():
        echo_cautions(cautions)
        echo_proposal(reading.proposal, reading.address_book)
        echo_unasked(reading.proposal)
        if names_signers:
            echo_signers(reading.proposal.signatures, reading.address_book)
    screen.end()


def _echo_rest(count: int, name: str) -> None:
    if count > 0:
        echo_fact("", f"and {counted(count, f'more {name}')}, above")


def _short(call: Call) -> str:
    """Write a call in short; a stranger's text is left out here, and printed above."""
    arguments = ", ".join(f"{name}={_value(name, each)}" for name, each in call.arguments.items())
    return f"{call.contract}.{call.function}({arguments})"


def _value(name: str, value: Any) -> str:
    if isinstance(value, str) and value != render(value):
        return "…"
    words = argument_words(name, value)
    return words if len(words) <= _LONGEST_VALUE else f"{words[:10]}…"


def _one_line(text: str) -> str:
    width = LINE_WIDTH - LABEL_WIDTH
    return text if len(text) <= width else f"{text[: width - 1]}…"
