"""``node reports``: the reports of misbehavior that the node hosts."""

from __future__ import annotations

from typing import Any, Final

import click

from chainkit.errors import MalformedData
from chainkit.misbehavior.report import Report, parse_unsigned
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.originated_envelope import parse_originated
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, json_option
from chainkit.text.counting import counted
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_indexer.service.opening import existing
from chainkit_indexer.service.options import database_option
from chainkit_node.inspection.words import response
from chainkit_node.storage.reports import StoredReport, read_reports_after

_MOST_BYTES: Final = 64 << 20
"""Bytes of reports that are in memory at a time."""


@click.command("reports", cls=CompleteCommand)
@database_option
@click.option(
    "--after",
    "after_ns",
    type=click.IntRange(min=0),
    default=0,
    metavar="NANOSECONDS",
    help="List reports that were stored after this server time, the last one of another list.",
)
@click.option("--node", "node_id", type=click.IntRange(min=0), help="List those about this node.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Most reports to list.",
)
@json_option
def reports_command(
    database: str, after_ns: int, node_id: int | None, limit: int, as_json: bool
) -> None:
    """List the reports of misbehavior that this node hosts, the oldest first.

    Each line has the server's time in nanoseconds since 1970, which --after takes, the accused, the
    type, how this node judged it, who saw it, and the evidence. It reads the database alone, also
    beside a running node.

    \b
    Example:
      chainkit node reports --database node.db --node 200
    """
    listed: list[dict[str, Any]] = []
    with existing(database) as store:
        while len(listed) < limit:
            with store.reading() as connection:
                rows = read_reports_after(
                    connection, after_ns, limit - len(listed), _MOST_BYTES, node_id
                )
            if not rows:
                break
            listed += map(_described, rows)
            after_ns = rows[-1].server_time_ns
    if as_json:
        echo_json(listed)
        return
    for each in listed:
        click.echo(
            f"{each['server_time_ns']} node {each['node_id']} {each['type']} {each['weight']}, "
            f"from {each['origin']}: {each['evidence']}"
        )
    if not listed:
        click.echo("no reports")


def _described(row: StoredReport) -> dict[str, Any]:
    report = parse_unsigned(row.report)
    return {
        "server_time_ns": row.server_time_ns,
        "reporter_time_ns": report.reporter_time_ns,
        "node_id": row.node_id,
        "type": report.misbehavior.name,
        "weight": row.weight,
        "origin": row.origin,
        "evidence": _evidence(report),
    }


def _evidence(report: Report) -> str:
    if report.response_time_ns is not None:
        seconds = report.response_time_ns / NANOSECONDS_PER_SECOND
        return response(report.misbehavior.name, seconds)
    heads = 0 if report.topics is None else len(report.topics.heads)
    shown = [counted(heads, "topic head")] if heads else []
    return "; ".join([*shown, *map(_envelope, report.envelopes)])


def _envelope(data: bytes) -> str:
    """Return an envelope's place in its originator's order."""
    try:
        served = parse_originator_envelope(data)
        place = f"{served.sequence_id} of originator {served.originator_id}"
        return f"{place} at transaction 0x{served.transaction_hash.hex()}"
    except MalformedData:
        # An envelope without a proof of the chain is an originator's.
        stated = parse_originated(data).envelope
        return f"{stated.sequence_id} of originator {stated.originator_id}"
