"""``client report``: the broken rules that this client has seen, and their reports."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from chainkit.nodes.connection import NodeEntry
from chainkit.nodes.pool import Nodes
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit_client.cli import pages
from chainkit_client.cli.home import Home, home_options
from chainkit_client.cli.opened import open_store
from chainkit_client.cli.reports import (
    Report,
    evidence_option,
    hand_in,
    make_folder,
    new_reporter,
    write_reports,
)
from chainkit_client.home import connect_chain
from chainkit_client.network.chain import Chain
from chainkit_client.storage.evidence import read_breaches, report_taken
from chainkit_client.storage.store import Store


@click.command("report", cls=CompleteCommand)
@home_options
@evidence_option
@click.option(
    "--submit",
    "is_submitted",
    is_flag=True,
    help="Hand the reports to all other enabled nodes, which judge and host them.",
)
@json_option
def report_command(
    home: Home, evidence_path: Path | None, is_submitted: bool, as_json: bool
) -> int:
    """List the rules that nodes broke before this client's eyes, and report them.

    It exits with 1 where there are some. It asks nobody without --submit.

    \b
    Example:
      chainkit client report --home alice
      chainkit client report --home alice --evidence reports --submit
    """
    settings = home.read_settings()
    store = open_store(home)
    try:
        with store.reading() as connection:
            breaches = read_breaches(connection)
        reports = [(each.node_id, each.report) for each in breaches if each.report is not None]
        if evidence_path is not None:
            make_folder(evidence_path)
            write_reports(evidence_path, reports, new_reporter())
        if is_submitted and reports:
            taken = asyncio.run(_submitted(connect_chain(settings), reports))
            _note(store, taken)
        with store.reading() as connection:
            breaches = read_breaches(connection)
    finally:
        store.close()
    if as_json:
        echo_json([pages.breach_as_json(each) for each in breaches])
    else:
        click.echo("\n".join(pages.breaches_lines(breaches)))
    return 1 if breaches else 0


async def _submitted(chain: Chain, reports: Sequence[Report]) -> Counter[Report]:
    """Hand reports to all enabled nodes; return how many nodes took each report."""
    _, registered = await asyncio.to_thread(chain.read_nodes)
    nodes = Nodes({})
    try:
        await nodes.update(
            {
                each.node_id: NodeEntry(each.http_address, each.signing_key)
                for each in registered
                if each.is_enabled
            }
        )
        taken = await asyncio.gather(*(hand_in(reports, each) for each in nodes))
    finally:
        await nodes.close()
    return Counter(report for each in taken for report in each)


def _note(store: Store, taken: Counter[Report]) -> None:
    with store.writing() as connection:
        for each in read_breaches(connection):
            if each.report is not None and (count := taken[each.node_id, each.report]):
                report_taken(connection, each.id, count)
