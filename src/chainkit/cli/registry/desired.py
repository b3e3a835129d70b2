"""``chainkit registry diff`` and ``plan``: the nodes that a council wants, beside the chain's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from chainkit.cli.change.changing import ChangeOptions, change, change_options
from chainkit.cli.change.typed_addresses import caution_of_addresses_in
from chainkit.cli.registry.addresses import UrlCheck, url_check_options
from chainkit.cli.registry.changes import OWNER
from chainkit.cli.registry.options import (
    block_option,
    echo_registry,
    node_json,
    open_registry,
    place_json,
)
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.registry import RegisteredNode, Registry
from chainkit.contracts.state import ContractState
from chainkit.council.calls import Call
from chainkit.council.calls.registry_effects import REGISTRY_EFFECTS
from chainkit.council.registry_plan import (
    NodeDifference,
    RegistryDifference,
    calls_towards,
    compare_nodes,
    read_desired_nodes,
)
from chainkit.errors import ConfigurationError
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.facts import echo_fact, echo_notice
from chainkit.terminal.options import deployment_option, echo_json, json_option, rpc_option

_DIFFERS = 1
"""Exit code where chain and file differ."""


@click.command("diff", cls=CompleteCommand)
@click.argument("desired_path", metavar="FILE", type=click.Path(path_type=Path))
@rpc_option
@deployment_option
@block_option
@json_option
def diff(
    desired_path: Path,
    rpc_url: str,
    deployment_path: Path,
    block_number: int | None,
    as_json: bool,
) -> None:
    """Compare the nodes of the chain with those in a YAML file; exits 1 where they differ.

    \b
    The file names each node by its key:
      nodes:
        - key: 0x04…
          holder: 0x70997970C51812dc3A010C7d01b50e0d17dc79C8
          http_address: https://node.example.org
          status: enabled        # or disabled

    \b
    Example:
      chainkit registry diff nodes.yaml --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    desired = read_desired_nodes(desired_path)
    found, record, block = open_registry(rpc_url, deployment_path, block_number)
    difference = compare_nodes(desired, found.registered_nodes(block))
    if as_json:
        echo_json(place_json(record, block) | _difference_json(difference))
    else:
        echo_registry(record)
        echo_fact("read at", f"block {block}")
        _echo_difference(difference)
    if not difference.is_empty:
        sys.exit(_DIFFERS)


@click.command("plan", cls=CompleteCommand)
@click.argument("desired_path", metavar="FILE", type=click.Path(path_type=Path))
@url_check_options
@change_options(OWNER)
def plan(desired_path: Path, url_check: UrlCheck, options: ChangeOptions) -> None:
    """Draft the calls that make the registry what a YAML file says; the file is that of `diff`.

    Adds nodes, enables, disables and transfers them, in this order. Nodes that are not in the file
    are left alone. Differences that no call can remove are one error: a node's key and URL
    never change (XIP-49 §3.1.1), and a node can be disabled only once it is there.

    \b
    Example:
      chainkit registry plan nodes.yaml --propose plan.json \\
        --rpc http://127.0.0.1:8545 --deployment deployment.json
    """
    desired = read_desired_nodes(desired_path)
    caution_of_addresses_in(desired_path)

    def calls(state: ContractState, record: DeploymentRecord) -> tuple[Call, ...]:
        registry = Registry(state.endpoint, record.node_registry.address)
        difference = compare_nodes(desired, registry.registered_nodes(state.block))
        found = calls_towards(record, difference)
        _warn(difference, url_check)
        if not found:
            got = f"all {len(desired)} nodes as they are at block {state.block}"
            raise ConfigurationError(f"plan of {desired_path}", "something that differs", got)
        return found

    change(calls, REGISTRY_EFFECTS, OWNER, options)


def _warn(difference: RegistryDifference, url_check: UrlCheck) -> None:
    for each in difference.unlisted_enabled:
        words = "is enabled and not in the file, and stays so; to disable it, list it as disabled"
        echo_notice(f"warning: node {each.node.node_id} {words}")
    added = (each.desired.http_address for each in difference.nodes if each.found is None)
    url_check.warn_of_silence(list(dict.fromkeys(added)))


def _echo_difference(difference: RegistryDifference) -> None:
    echo_fact("differences", "the chain -> the file")
    for each in difference.nodes:
        _echo_node(each)
    for unlisted in difference.unlisted:
        echo_fact(f"node {unlisted.node.node_id}", _unlisted_words(unlisted))
    if difference.is_empty:
        echo_fact("verdict", "the same")
    else:
        echo_fact("verdict", "they differ; `chainkit registry plan FILE` drafts the calls")


def _echo_node(each: NodeDifference) -> None:
    label = "new node" if each.found is None else f"node {each.found.node.node_id}"
    if each.found is None:
        echo_fact(label, f"key of {each.desired.key_address}")
        label = ""
    if not each.fields:
        echo_fact(label, "the same")
    for field in each.fields:
        echo_fact(label, str(field))
        label = ""


def _unlisted_words(unlisted: RegisteredNode) -> str:
    if unlisted.node.is_enabled:
        return "enabled and not in the file (nodes are never removed: list it as disabled)"
    return "disabled and not in the file: no difference"


def _difference_json(difference: RegistryDifference) -> dict[str, Any]:
    return {
        "differs": not difference.is_empty,
        "nodes": [
            {
                "node_id": each.found and each.found.node.node_id,
                "key_address": each.desired.key_address,
                "path": each.desired.path,
                "differences": [
                    {"field": field.name, "chain": field.on_chain, "file": field.desired}
                    for field in each.fields
                ],
            }
            for each in difference.nodes
        ],
        "unlisted": [
            node_json(each.node) | {"holder": each.holder} for each in difference.unlisted
        ],
    }
