"""``gateway costs``: what publishing cost, from the journal alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.counting import counted
from chainkit.text.ether import ether_words
from chainkit.text.printable import printable
from chainkit_gateway.cli.options import journal_option_for
from chainkit_gateway.daily_sums import Spending
from chainkit_gateway.journal import Journal


@click.command("costs", cls=CompleteCommand)
@journal_option_for("The gateway's journal; it may be running.")
@json_option
def costs_command(journal_path: Path, as_json: bool) -> None:
    """Tell what publishing cost, by day and client, exact.

    Each transaction counts on the day of UTC on which it was sent first, with the gas that it used
    times the price that it paid, as its receipt has them. Those that wait for a receipt are named
    with the most that they may cost.

    \b
    Example:
      chainkit gateway costs --journal gateway.db
    """
    journal = Journal.read(journal_path)
    try:
        spending = journal.spending()
    finally:
        journal.close()
    if as_json:
        echo_json(_as_json(spending))
        return
    for each in spending:
        click.echo(f"{each.day}  {printable(each.client)}: {_words(each)}")
    paid = sum(each.paid for each in spending)
    click.echo(f"total: {ether_words(paid)}")


def _words(each: Spending) -> str:
    parts = [f"{counted(each.published, 'transaction')}, {ether_words(each.paid)}"]
    if each.reverted:
        parts.append(f"and {each.reverted} reverted, paid as well")
    if each.waiting:
        parts.append(f"and {each.waiting} waiting, at most {ether_words(each.reserved)}")
    return " ".join(parts)


def _as_json(spending: Sequence[Spending]) -> dict[str, Any]:
    days = [
        {
            "day": each.day.isoformat(),
            "client": each.client,
            "published": each.published,
            "reverted": each.reverted,
            "waiting": each.waiting,
            "paid_wei": each.paid,
            "reserved_wei": each.reserved,
        }
        for each in spending
    ]
    return {
        "days": days,
        "paid_wei": sum(each.paid for each in spending),
        "reserved_wei": sum(each.reserved for each in spending),
    }
