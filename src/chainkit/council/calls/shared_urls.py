"""Warns of two enabled nodes at one URL: each has a key, and readers reach only one of the nodes.

A key at the URL of another node is a typing error, or a second process in the place of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chainkit.council.calls.call import Call
from chainkit.errors import ConfigurationError
from chainkit.text.node_url import grpc_target

if TYPE_CHECKING:
    from chainkit.contracts.state import ContractState

_NEW = "the new node"


@dataclass(slots=True)
class _Entry:
    url: str
    is_enabled: bool
    is_changed: bool = False
    """A call enables the node, or changes its URL."""


def shared_url_cautions(calls: Sequence[Call], state: ContractState) -> tuple[str, ...]:
    """Return a caution for each node that the calls put at the URL of another enabled node."""
    about_nodes = [each for each in calls if each.function in _CHANGES]
    if not about_nodes:
        return ()
    # Commands without a network load this module, and nothing that could open one.
    from chainkit.contracts.registry.reading import Registry

    nodes = Registry(state.endpoint, about_nodes[0].target).nodes(state.block)
    entries = {f"node {node.node_id}": _Entry(node.http_address, node.is_enabled) for node in nodes}
    for number, call in enumerate(about_nodes):
        _CHANGES[call.function](entries, call, number)
    enabled = {name: each for name, each in entries.items() if each.is_enabled}
    return tuple(
        f"{_shown(name)} is at the URL of {_shown(other)}, which is enabled: "
        "two keys at one URL, and others reach one of the two"
        for name, each in enabled.items()
        if each.is_changed
        for other, known in enabled.items()
        if other != name and _place(known.url) == _place(each.url)
    )


def _add(entries: dict[str, _Entry], call: Call, number: int) -> None:
    entries[f"{_NEW}#{number}"] = _Entry(call.arguments["httpAddress"], True, is_changed=True)


def _enable(entries: dict[str, _Entry], call: Call, _number: int) -> None:
    entry = entries.get(f"node {call.arguments['tokenId']}")
    if entry is not None:
        entry.is_enabled = entry.is_changed = bool(call.arguments["isHealthy"])


def _move(entries: dict[str, _Entry], call: Call, _number: int) -> None:
    entry = entries.get(f"node {call.arguments['tokenId']}")
    if entry is not None:
        entry.url, entry.is_changed = call.arguments["httpAddress"], True


_CHANGES = {"addNode": _add, "updateHealth": _enable, "updateHttpAddress": _move}


def _shown(name: str) -> str:
    return name.partition("#")[0]


def _place(url: str) -> tuple[str, str]:
    """Return what a connection goes to: a slash at the end, or a default port, is no difference."""
    try:
        return grpc_target("URL", url)
    except ConfigurationError:
        return "", url
