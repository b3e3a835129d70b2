"""``node watch``: the whole network, again and again."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.chain import Endpoint
from chainkit.contracts.counter import read_counter
from chainkit.contracts.deployment import record_subject
from chainkit.contracts.followed import FollowedDeployment, read_followed_deployment
from chainkit.contracts.registry import Registry
from chainkit.contracts.right_chain import check_deployment
from chainkit.errors import ConfigurationError, RetryableChainError
from chainkit.nodes.trust import peer_ca_option
from chainkit.service.log_lines import one_line
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.options import echo_json, file_option, json_option, rpc_option
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, BlockReference, Node
from chainkit_node.inspection.network import (
    NetworkStatus,
    find_network_attention,
    network_as_json,
)
from chainkit_node.inspection.network_asker import PATIENCE_SECONDS, NetworkAsker
from chainkit_node.inspection.network_text import network_as_text
from chainkit_node.inspection.snapshot import BlockStatus

_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class _Chain:
    """A registry behind an endpoint, and the chain's counters where a record names them."""

    registry: Registry
    deployment: FollowedDeployment | None

    @property
    def sparse(self) -> frozenset[int]:
        """The originators whose ids are sparse, as far as a record says so."""
        return self.deployment.sparse_originator_ids if self.deployment else frozenset()

    def read(self) -> tuple[BlockReference, Sequence[Node], Mapping[int, int | None]]:
        """Return the head, the registry's nodes, and the highest id of each of its originators."""
        endpoint = self.registry.endpoint
        head = endpoint.head().reference
        nodes = self.registry.nodes(head)
        if self.deployment is None:
            return head, nodes, {BLOCKCHAIN_ORIGINATOR_ID: None}
        highest = {
            each: None if counter is None else read_counter(endpoint, counter, head)
            for each, counter in self.deployment.counters.items()
        }
        return head, nodes, highest


@click.command("watch", cls=CompleteCommand)
@rpc_option
@file_option(
    "--deployment",
    "deployment_path",
    "CHAINKIT_DEPLOYMENT",
    "Deployment record, which names the registry and the chain's counters.",
)
@click.option(
    "--registry",
    "registry_address",
    metavar="ADDRESS",
    help="The registry's address instead, on the chain of --rpc.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="How long to wait between two looks.",
)
@click.option(
    "--patience",
    "patience_seconds",
    type=click.FloatRange(min=0.1),
    default=PATIENCE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long a node has for all its answers.",
)
@peer_ca_option
@click.option("--once", is_flag=True, help="Look once, for a script.")
@json_option
def watch_command(
    rpc_url: str,
    deployment_path: Path | None,
    registry_address: str | None,
    seconds: float,
    patience_seconds: float,
    once: bool,
    as_json: bool,
) -> int:
    """Show all nodes of a registry: who answers, who is accused, and who holds how much.

    Each node is asked for its health, for the highest sequence id that it holds of each originator,
    and for the reports that it hosts. The table has originators against nodes, with the lag in
    brackets, unless the originator's ids are sparse. With --once it ends with 1 where an enabled
    node does not answer or does not serve, or where evidence proves that one broke the protocol.
    --json gives one document for each look, on a line of its own without --once.

    \b
    Example:
      chainkit node watch --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    chain = _opened(rpc_url, deployment_path, registry_address)
    return asyncio.run(_watch(chain, seconds, patience_seconds, once, as_json))


def _opened(rpc_url: str, deployment_path: Path | None, registry_address: str | None) -> _Chain:
    if registry_address is not None:
        if _ADDRESS.fullmatch(registry_address) is None:
            raise ConfigurationError("--registry", "0x and 40 hex digits", "another form")
        address, endpoint = bytes.fromhex(registry_address[2:]), Endpoint.connect(rpc_url)
        if not endpoint.code(address, endpoint.head().reference):
            subject = f"--registry {registry_address} at {endpoint.name}"
            raise ConfigurationError(subject, "a contract", "no code")
        return _Chain(Registry(endpoint, address), None)
    if deployment_path is None:
        raise click.UsageError("missing --deployment FILE, or --registry ADDRESS")
    deployment = read_followed_deployment(deployment_path)
    registry = deployment.registry_here(record_subject(deployment_path))
    endpoint = Endpoint.connect(rpc_url)
    check_deployment(endpoint, deployment)
    return _Chain(Registry(endpoint, registry.address), deployment)


async def _watch(
    chain: _Chain, seconds: float, patience_seconds: float, once: bool, as_json: bool
) -> int:
    asker, logged, count = NetworkAsker(patience_seconds), "", 0
    try:
        while True:
            try:
                network = await _look(chain, asker)
            except RetryableChainError as error:
                if once or not count:
                    raise
                if str(error) != logged:
                    click.echo(f"retrying: {one_line(str(error))}", err=True)
                logged = str(error)
            else:
                _echo(network, as_json, once, count)
                logged, count = "", count + 1
                if once:
                    return 1 if find_network_attention(network) else 0
            await asyncio.sleep(seconds)
    finally:
        await asker.close()


async def _look(chain: _Chain, asker: NetworkAsker) -> NetworkStatus:
    block, nodes, of_chain = await asyncio.to_thread(chain.read)
    answers = await asker.look(nodes, of_chain)
    highest = {each: of_chain.get(each) or 0 for each in (*of_chain, *(n.node_id for n in nodes))}
    for answer in answers:
        for each, held in answer.held.items():
            highest[each] = max(highest[each], held or 0)
    return NetworkStatus(
        taken_at=time.time(),
        block=BlockStatus(block.number, hex0x(block.hash)),
        nodes=answers,
        highest=highest,
        accusations=asker.reported.accusations(),
        sparse=chain.sparse,
    )


def _echo(network: NetworkStatus, as_json: bool, once: bool, count: int) -> None:
    if as_json and once:
        echo_json(network_as_json(network))
    elif as_json:
        click.echo(json.dumps(network_as_json(network), sort_keys=True))
    else:
        if sys.stdout.isatty() and not once:
            click.clear()
        elif count:
            click.echo()
        click.echo(network_as_text(network))
    # A reader of a pipe wants each look at once, not when a buffer is full.
    sys.stdout.flush()
