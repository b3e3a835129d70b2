"""``client history check``: what other devices sent, beside what nodes and chain still have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.terminal.tables import columns
from chainkit.terminal.waiting import told_while_waiting
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.names import short
from chainkit_client.cli.opened import run
from chainkit_client.history.coverage import Coverage
from chainkit_client.home import Client
from chainkit_client.storage.imported_schema import Standing

_COUNTED: Final = {
    "proven": Standing.PROVEN,
    "expired": Standing.EXPIRED,
    "invented": Standing.INVENTED,
    "disputed": Standing.DISPUTED,
    "unpublished": Standing.PLACELESS,
    "unchecked": None,
}


@click.command("check", cls=CompleteCommand)
@home_options
@json_option
def check_command(home: Home, as_json: bool) -> int:
    """Compare what other devices sent with what nodes and chain still have.

    A message is proven where the network has the envelope that its device names. Messages are
    omitted where nodes have some that no device shows. It exits with 1 where messages are
    omitted, invented or disputed.

    \b
    Example:
      chainkit client history check --home phone
    """

    async def do(client: Client) -> int:
        with told_while_waiting(lambda: "asking nodes …"):
            found = await client.messenger.check_history()
        if as_json:
            echo_json([_coverage_as_json(each) for each in found])
        else:
            click.echo("\n".join(_coverage_lines(found)))
        return 1 if any(each.is_doubtful for each in found) else 0

    return run(home, do)


def _coverage_as_json(coverage: Coverage) -> dict[str, Any]:
    counts = {name: coverage.count(standing) for name, standing in _COUNTED.items()}
    return {"group": coverage.group_id.hex(), **counts, "omitted": coverage.omitted}


def _coverage_lines(found: Sequence[Coverage]) -> list[str]:
    if not found:
        return ["no messages of other devices"]
    rows = [
        (
            short(each.group_id),
            *(str(each.count(standing)) for standing in _COUNTED.values()),
            str(each.omitted),
        )
        for each in found
    ]
    return columns(("group", *_COUNTED, "omitted"), rows)
