"""``chainkit council gather``: the reports of all nodes, in one folder for triage."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from chainkit.contracts.followed import node_registry_of
from chainkit.contracts.registry import Registry
from chainkit.council.gathering.folder import ReportFolder
from chainkit.council.gathering.gatherer import Connect, Gathered, Gatherer, Host
from chainkit.council.gathering.page import gather_page
from chainkit.errors import ConfigurationError
from chainkit.extras import how_to_install
from chainkit.nodes.trust import peer_ca_option
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_recorded_chain
from chainkit.terminal.facts import echo_fact, echo_wrapped
from chainkit.terminal.options import deployment_option, echo_json, json_option, rpc_option
from chainkit.terminal.waiting import told_while_waiting
from chainkit.text.counting import counted
from chainkit.text.printable import printable
from chainkit.types import BlockReference, Node

DEFAULT_SECONDS: Final = 120.0
"""Time for one node: some thousand reports over a slow line."""

_INCOMPLETE, _NOTHING = 1, 2
"""Exit codes where a node did not give all of its reports, and where no node answered."""

_HEADINGS: Final = ("node", "status", "reports", "new", "wrong key", "malformed", "left out")


@click.command("gather", cls=CompleteCommand)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@rpc_option
@deployment_option
@click.option(
    "--node",
    "given",
    metavar="ID=URL",
    multiple=True,
    help="Ask this node elsewhere than the registry says; may be given again.",
)
@click.option(
    "--after",
    "after_ns",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    metavar="NS",
    help="Only reports that a node stored after this time: nanoseconds since 1970, by its clock.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_SECONDS,
    show_default=True,
    metavar="S",
    help="The longest time that one node may take.",
)
@peer_ca_option
@json_option
def gather(
    directory: Path,
    rpc_url: str,
    deployment_path: Path,
    given: tuple[str, ...],
    after_ns: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Ask every registered node for its misbehavior reports, and write them into a folder.

    Disabled nodes are asked too. A report is kept if the key that the registry has of its host
    signed it. DIR is what `council triage` reads; nothing in it is overwritten but the page of the
    last gathering, gather.json, which tells which node has which report. Exits 0 if every node
    answered to the end and nothing else than its own reports, 1 if a node did not, 2 if none
    answered or something could not be read or written.

    \b
    Example:
      chainkit council gather evidence --rpc http://127.0.0.1:8545 --deployment deployment.json
      chainkit council gather evidence --node 300=https://mirror.example \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    urls = _given_urls(given)
    connect = _connect_for(seconds)
    endpoint, record, head = open_recorded_chain(rpc_url, deployment_path)
    block = head.reference
    nodes = Registry(endpoint, node_registry_of(record).address).nodes(block)
    hosts = _hosts(nodes, urls)
    folder = ReportFolder(directory)
    gatherer = Gatherer(folder, connect, folder.share(len(hosts), seconds), after_ns)
    waiting = [host.node.node_id for host in hosts]

    def words() -> str:
        done = f"{len(hosts) - len(waiting)} of {counted(len(hosts), 'node')} done"
        return f"{done}; waiting for {', '.join(map(str, waiting))}, up to {seconds:g} s each"

    with told_while_waiting(words):
        results = asyncio.run(
            gatherer.gather(hosts, lambda result: waiting.remove(result.host.node.node_id))
        )
    page = gather_page(results, record.chain_id, block, after_ns)
    folder.write_page(page)
    if as_json:
        echo_json(page)
    else:
        echo_page(page, block, directory)
    sys.exit(_exit_code(results))


def _connect_for(seconds: float) -> Connect:
    try:
        from chainkit.council.gathering.transport import connect_for
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "council gather", f"the package {error.name}", "none", how_to_install("council")
        ) from error
    return connect_for(seconds)


def _hosts(nodes: Sequence[Node], given: Mapping[int, str]) -> list[Host]:
    ids = [node.node_id for node in nodes]
    for node_id in given.keys() - set(ids):
        listed = ", ".join(map(str, ids)) or "none"
        raise ConfigurationError("--node", f"a node of the registry: {listed}", node_id)
    if not nodes:
        raise ConfigurationError("nodes", "at least one in the registry", "none")
    return [Host(node, given.get(node.node_id, node.http_address)) for node in nodes]


def _given_urls(texts: Sequence[str]) -> dict[int, str]:
    urls: dict[int, str] = {}
    for text in texts:
        number, _, url = text.partition("=")
        if not (number.isascii() and number.isdecimal() and url):
            raise ConfigurationError("--node", "ID=URL, such as 100=https://node.example", text)
        if urls.setdefault(int(number), url) != url:
            raise ConfigurationError("--node", f"node {int(number)} once", "twice")
    return urls


def _exit_code(results: Sequence[Gathered]) -> int:
    if all(each.is_complete for each in results):
        return 0
    has_answer = any(each.fault is None or each.pages.reports for each in results)
    return _INCOMPLETE if has_answer else _NOTHING


def echo_page(page: Mapping[str, Any], block: BlockReference, directory: Path) -> None:
    """Print each node's counts, and why its reports are not all here."""
    echo_fact("read at", f"block {block}")
    echo_fact("folder", printable(str(directory)))
    click.echo()
    _echo_row(_HEADINGS, "answer")
    for node in page["nodes"]:
        names = ("node_id", "status", "reports", "new", "wrong_key", "malformed", "left_out")
        _echo_row([node[name] for name in names], "complete" if node["complete"] else "not all")
        if node["fault"] is not None:
            echo_wrapped(printable(node["fault"]), 8)
    click.echo()
    echo_fact("reports", f"{len(page['reports'])} different, {_new(page)} new files")
    if not page["complete"]:
        echo_fact("caution", "not every node gave all of its reports: see above")


def _new(page: Mapping[str, Any]) -> int:
    return sum(node["new"] for node in page["nodes"])


def _echo_row(cells: Sequence[object], answer: str) -> None:
    node, status, *counts = cells
    widths = (7, 5, 9, 9, 8)
    shown = "  ".join(f"{cell!s:>{width}}" for cell, width in zip(counts, widths, strict=True))
    click.echo(f"{node!s:>6}  {status!s:<8}  {shown}  {answer}")
