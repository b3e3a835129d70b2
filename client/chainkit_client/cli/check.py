"""``client check``: a watchdog for anybody."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.council.evidence.report import check_unchanged
from chainkit.errors import RetryableChainError
from chainkit.evidence.verdict import Verdict
from chainkit.misbehavior.types import UNRESPONSIVE_SECONDS
from chainkit.nodes.connection import NodeEntry
from chainkit.nodes.pool import Nodes
from chainkit.nodes.trust import peer_ca_option
from chainkit.service.log_lines import one_line
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import deployment_option, json_option, rpc_option
from chainkit.types import BlockReference, Node
from chainkit_client.checking.check import Checker, NodeCheck
from chainkit_client.checking.check_output import check_as_json, check_as_metrics, check_as_text
from chainkit_client.checking.findings import Finding
from chainkit_client.checking.node_asker import NodeAsker
from chainkit_client.cli.reports import (
    evidence_option,
    hand_in,
    make_folder,
    new_reporter,
    write_file,
    write_reports,
)
from chainkit_client.home import chain_of
from chainkit_client.network.chain import Chain
from chainkit_client.reading.verified import Keys

_PATIENCE_SECONDS: Final = 5.0
_LEAST_PATIENCE_SECONDS: Final = UNRESPONSIVE_SECONDS + 0.5
"""A node counts as silent only after UNRESPONSIVE_SECONDS without an answer."""


@dataclass(frozen=True, slots=True)
class _Output:
    """The nodes to show, and the places where the outcome goes."""

    node_ids: Sequence[int]
    """The nodes to show; empty for all nodes."""
    as_json: bool
    metrics_path: Path | None
    evidence_path: Path | None
    is_reported: bool


@click.command("check", cls=CompleteCommand)
@click.argument("node_ids", nargs=-1, type=click.IntRange(min=1), metavar="[NODE]…")
@rpc_option
@deployment_option
@click.option(
    "--latest",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    metavar="N",
    help="How many of each log's latest ids are compared.",
)
@click.option(
    "--patience",
    "patience_seconds",
    type=click.FloatRange(_LEAST_PATIENCE_SECONDS, 600.0),
    default=_PATIENCE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long one answer may take; all those of a node ten times as long.",
)
@click.option(
    "--every",
    "every_seconds",
    type=click.FloatRange(min=1.0),
    metavar="SECONDS",
    help="Check again and again, with such a pause, until you interrupt it.",
)
@evidence_option
@click.option(
    "--report",
    "is_reported",
    is_flag=True,
    help="Hand each finding's report to all other enabled nodes, which judge and host it.",
)
@click.option(
    "--metrics",
    "metrics_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write metrics there, for the textfile collector of Prometheus' node exporter.",
)
@peer_ca_option
@json_option
def check_command(
    node_ids: tuple[int, ...],
    rpc_url: str,
    deployment_path: Path,
    latest: int,
    patience_seconds: float,
    every_seconds: float | None,
    evidence_path: Path | None,
    is_reported: bool,
    metrics_path: Path | None,
    as_json: bool,
) -> int:
    """Compare all nodes with each other and with the chain; report what they do wrong.

    All enabled nodes are asked for the ends of all logs. NODE are ids of the nodes whose findings
    are shown; by default all. The others are asked, too: one node alone cannot be compared. A node
    is found to omit envelopes that others have, to sign two under one id, to send them out of
    order, to serve payloads that are not the chain's or break a rule, to answer late or not at all.
    Each finding is proved, claimed (several reporters must say so), or only seen. It ends with 1
    where there are findings.

    \b
    Example:
      chainkit client check --rpc http://127.0.0.1:8545 --deployment deployment.json
      chainkit client check 200 --latest 5000 --evidence reports --report
    """
    if evidence_path is not None:
        make_folder(evidence_path)
    chain = chain_of(rpc_url, deployment_path)
    output = _Output(node_ids, as_json, metrics_path, evidence_path, is_reported)
    looks = _Looks(chain, latest, patience_seconds, output)
    return asyncio.run(looks.run(every_seconds))


class _Looks:
    def __init__(self, chain: Chain, latest: int, patience_seconds: float, output: _Output) -> None:
        self._chain = chain
        self._latest = latest
        self._patience_seconds = patience_seconds
        self._output = output
        self._nodes = Nodes({})
        self._key = new_reporter()
        self._told: set[object] = set()

    async def run(self, every_seconds: float | None) -> int:
        try:
            while True:
                try:
                    has_findings = await self._look()
                except RetryableChainError as error:
                    if every_seconds is None:
                        raise
                    click.echo(f"retrying: {one_line(str(error))}", err=True)
                else:
                    if every_seconds is None:
                        return 1 if has_findings else 0
                await asyncio.sleep(every_seconds)
        finally:
            await self._nodes.close()

    async def _look(self) -> bool:
        wanted = self._output.node_ids
        block, nodes = await asyncio.to_thread(self._chain.read_nodes, wanted)
        checks = [*await self._check(block, nodes)]
        shown = [each for each in checks if not wanted or each.node_id in wanted]
        self._tell(shown, block)
        await self._report(shown)
        return any(each.findings for each in shown)

    async def _check(self, block: BlockReference, nodes: Sequence[Node]) -> Iterable[NodeCheck]:
        """Return the outcome for each node of the registry."""
        by_id = {each.node_id: each for each in nodes}
        unusable = await self._nodes.update(
            {
                each.node_id: NodeEntry(each.http_address, each.signing_key)
                for each in nodes
                if each.is_enabled
            }
        )
        signing_keys = {each.node_id: each.signing_key for each in nodes}
        keys = Keys(signing_keys, self._chain.originator_ids, self._chain.sparse_ids)

        async def judge(node_id: int, envelope: bytes) -> Verdict:
            return await asyncio.to_thread(self._chain.judge, by_id[node_id], block, envelope)

        askers = [
            NodeAsker(each, keys, time.time_ns, self._patience_seconds) for each in self._nodes
        ]
        checker = Checker(askers, keys, time.time_ns, judge)
        checked = await checker.check(self._latest, self._print_stage)
        checks = {each.node_id: each for each in checked}
        await asyncio.to_thread(check_unchanged, self._chain.endpoint, block)
        for node_id in sorted(by_id.keys() - checks.keys()):
            error = unusable.get(node_id)
            why = "it is disabled" if error is None else str(error)
            found = () if error is None else (Finding(node_id, why),)
            checks[node_id] = NodeCheck(node_id, why, (), 0, {}, found)
        return (checks[each] for each in sorted(checks))

    def _print_stage(self, stage: str) -> None:
        if not self._output.as_json and sys.stderr.isatty():
            click.echo(f"{stage} …", err=True)

    def _tell(self, checks: Sequence[NodeCheck], block: BlockReference) -> None:
        taken_ns = time.time_ns()
        if self._output.as_json:
            click.echo(json.dumps(check_as_json(checks, block, taken_ns), sort_keys=True))
        else:
            click.echo(check_as_text(checks, block, taken_ns))
        sys.stdout.flush()
        if self._output.metrics_path is not None:
            write_file(self._output.metrics_path, check_as_metrics(checks, taken_ns))

    async def _report(self, checks: Sequence[NodeCheck]) -> None:
        """Store the report of each new finding, and then hand in the reports."""
        new = {
            finding.key: (finding.node_id, finding.unsigned_report)
            for check in checks
            for finding in check.findings
            if finding.unsigned_report is not None and finding.key not in self._told
        }
        if self._output.evidence_path is not None:
            write_reports(self._output.evidence_path, list(new.values()), self._key)
        if self._output.is_reported:
            handed_in = (hand_in(list(new.values()), each) for each in self._nodes)
            await asyncio.gather(*handed_in)
        self._told.update(new)
