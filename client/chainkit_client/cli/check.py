"""``client check``: a watchdog for anybody."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click

from chainkit.chain import Endpoint
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import read_followed_deployment
from chainkit.contracts.registry import Registry
from chainkit.council.evidence import verify_report
from chainkit.documents.files import moved_into_place
from chainkit.errors import ChainkitError, ConfigurationError, RetryableChainError
from chainkit.evidence.verdict import Verdict
from chainkit.protocol.reports import misbehavior_digest, sign_report
from chainkit.service.log_lines import one_line
from chainkit.service.refusals import PassedOn
from chainkit.signatures import SigningKey
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.connection import open_chain
from chainkit.terminal.options import deployment_option, json_option, rpc_option
from chainkit.types import BlockReference, Node
from chainkit_client.breach import Breach
from chainkit_client.checking.asking import NodeAsker
from chainkit_client.checking.check import Checker, NodeCheck, Scope
from chainkit_client.checking.findings import Finding
from chainkit_client.checking.pages import check_as_json, check_as_metrics, check_as_text
from chainkit_client.nodes.connection import NodeConnection, NodeEntry
from chainkit_client.reading.verified import Keys

_PATIENCE_SECONDS: Final = 4.0
_SUBMIT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Output:
    """Where the outcome goes."""

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
    type=click.FloatRange(min=0.1, max=600.0),
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
@click.option(
    "--evidence",
    "evidence_path",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a report for each finding there, for `chainkit council triage`.",
)
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
        _make_folder(evidence_path)
    endpoint, record, _ = open_chain(rpc_url, deployment_path)
    chain_ids = frozenset(read_followed_deployment(deployment_path).originator_ids)
    output = _Output(as_json, metrics_path, evidence_path, is_reported)
    chain = _Chain(endpoint, record, chain_ids)
    looks = _Looks(chain, node_ids, latest, patience_seconds, output)
    return asyncio.run(looks.run(every_seconds))


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        expected, got = "a folder for reports", os.strerror(error.errno or 0)
        raise ConfigurationError(f"folder {path}", expected, got) from error


@dataclass(frozen=True, slots=True)
class _Chain:
    """A deployment behind an endpoint."""

    endpoint: Endpoint
    record: DeploymentRecord
    originator_ids: frozenset[int]
    """The chain's."""

    def read_nodes(self, wanted: Sequence[int]) -> tuple[BlockReference, Sequence[Node]]:
        """Return the head, and the registry there. Raises ConfigurationError for unknown ids."""
        block = self.endpoint.head().reference
        nodes = Registry(self.endpoint, self.record.node_registry.address).nodes(block)
        known = {each.node_id for each in nodes}
        for each in wanted:
            if each not in known:
                listed = ", ".join(map(str, sorted(known))) or "none"
                raise ConfigurationError("NODE", f"one of the registry: {listed}", each)
        return block, nodes


class _Looks:
    def __init__(
        self,
        chain: _Chain,
        shown_ids: Sequence[int],
        latest: int,
        patience_seconds: float,
        output: _Output,
    ) -> None:
        self._chain = chain
        self._shown_ids = shown_ids
        self._latest = latest
        self._patience_seconds = patience_seconds
        self._output = output
        self._key = SigningKey(secrets.token_bytes(32))
        """Signs reports for the folder: a report counts by what it proves, whoever signed it."""
        self._told: set[tuple[int, str]] = set()

    async def run(self, every_seconds: float | None) -> int:
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

    async def _look(self) -> bool:
        block, nodes = await asyncio.to_thread(self._chain.read_nodes, self._shown_ids)
        keys = Keys({each.node_id: each.signing_key for each in nodes}, self._chain.originator_ids)
        enabled = [each for each in nodes if each.is_enabled]
        connections = [_connection(each) for each in enabled]
        askers = [
            NodeAsker(each, keys, time.time_ns, self._patience_seconds) for each in connections
        ]
        originator_ids = (*sorted(keys.chain_ids), *sorted(keys.by_node))
        judge = partial(self._judge, block)
        try:
            checker = Checker(askers, keys, time.time_ns, judge)
            scope = Scope(originator_ids, self._latest)
            checks = await checker.check(scope, self._tell_stage)
            shown = [
                each for each in checks if not self._shown_ids or each.node_id in self._shown_ids
            ]
            self._tell(shown, block)
            await self._report(shown, connections)
        finally:
            await asyncio.gather(*(each.close() for each in connections))
        return any(each.findings for each in shown)

    async def _judge(self, block: BlockReference, breach: Breach) -> Verdict:
        unsigned = breach.report(time.time_ns())
        assert unsigned is not None
        signed = sign_report(unsigned, self._key)
        found = await asyncio.to_thread(
            verify_report, signed, self._chain.endpoint, self._chain.record, block
        )
        return found.verdict

    def _tell_stage(self, stage: str) -> None:
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
            _write(self._output.metrics_path, check_as_metrics(checks, taken_ns))

    async def _report(
        self, checks: Sequence[NodeCheck], connections: Sequence[NodeConnection]
    ) -> None:
        """Keep each new finding's report first, and hand it in then."""
        new = [
            finding
            for check in checks
            for finding in check.findings
            if finding.unsigned_report is not None and finding.key not in self._told
        ]
        for finding in new:
            self._keep(finding)
        if self._output.is_reported and new:
            await asyncio.gather(*(_hand_in(new, each) for each in connections))
        self._told.update(each.key for each in new)

    def _keep(self, finding: Finding) -> None:
        if self._output.evidence_path is None or finding.unsigned_report is None:
            return
        name = f"node-{finding.node_id}-{misbehavior_digest(finding.unsigned_report).hex()}.pb"
        _write(self._output.evidence_path / name, sign_report(finding.unsigned_report, self._key))


async def _hand_in(findings: Sequence[Finding], host: NodeConnection) -> None:
    """Hand in the reports about all other nodes, and say how many a node did not take."""
    reports = [
        each.unsigned_report
        for each in findings
        if each.unsigned_report is not None and each.node_id != host.node_id
    ]
    taken, fault = 0, ""
    for report in reports:
        try:
            await host.submit_report(report, _SUBMIT_SECONDS)
            taken += 1
        except PassedOn as error:
            # It judges each by itself.
            fault = str(error)
        except ChainkitError as error:
            fault = str(error)
            break
    if fault:
        told = f"node {host.node_id} took {taken} of {len(reports)} reports: {one_line(fault)}"
        click.echo(told, err=True)


def _connection(node: Node) -> NodeConnection:
    return NodeConnection(node.node_id, NodeEntry(node.http_address, node.signing_key))


def _write(path: Path, content: bytes) -> None:
    try:
        with moved_into_place(path) as partial_path:
            partial_path.write_bytes(content)
    except OSError as error:
        got = os.strerror(error.errno or 0)
        raise ConfigurationError(f"file {path}", "a file that can be written", got) from error
