"""How the nodes of the chain differ from those that a council wants, and the calls that help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.registry.reading import RegisteredNode, node_facts
from chainkit.council.calls import Call
from chainkit.council.calls.effect import NONE
from chainkit.council.registry_plan.desired import DesiredNode
from chainkit.documents.fields import Faults
from chainkit.text.printable import printable

_FunctionCall = tuple[str, tuple[object, ...]]
"""A function's name and its arguments."""


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One value of a node in the registry, and the desired value; safe to print."""

    name: str
    """``status``, ``holder`` or ``http address``."""
    on_chain: str
    """``(none)`` for a node that is not registered."""
    desired: str

    def __str__(self) -> str:
        """The difference in one line."""
        return f"{self.name}: {self.on_chain} -> {self.desired}"


@dataclass(frozen=True, slots=True)
class NodeDifference:
    """A desired node beside the registry's node with the same key."""

    desired: DesiredNode
    found: RegisteredNode | None
    """None where no node ever had the key."""
    fields: tuple[FieldDifference, ...]
    """Empty where the registry has the desired values."""


@dataclass(frozen=True, slots=True)
class RegistryDifference:
    """A whole file of desired nodes beside the registry at a block."""

    nodes: tuple[NodeDifference, ...]
    """In the order of the file."""
    unlisted: tuple[RegisteredNode, ...]
    """Nodes on the chain and not in the file, by id. Nodes are never removed, they are disabled."""

    @property
    def unlisted_enabled(self) -> tuple[RegisteredNode, ...]:
        """The enabled nodes of ``unlisted``: the file rejects them, or forgot them."""
        return tuple(each for each in self.unlisted if each.node.is_enabled)

    @property
    def is_empty(self) -> bool:
        """Whether chain and file are equal; a disabled node need not be in the file."""
        return not self.unlisted_enabled and not any(each.fields for each in self.nodes)


def compare_nodes(
    desired: Sequence[DesiredNode], registered: Sequence[RegisteredNode]
) -> RegistryDifference:
    """Compare a file's nodes with the chain's; a node is known by its key."""
    of_key = {each.node.signing_key: each for each in registered}
    nodes = tuple(_compare(each, of_key.get(each.key)) for each in desired)
    listed = {each.key for each in desired}
    unlisted = tuple(each for each in registered if each.node.signing_key not in listed)
    return RegistryDifference(nodes, unlisted)


def calls_towards(record: DeploymentRecord, difference: RegistryDifference) -> tuple[Call, ...]:
    """Return the calls that make the registry equal to the file: none where it is already.

    New nodes come first, so that the network never has fewer than it needs; then nodes are enabled,
    disabled, and given to other holders, each in the order of the file. Nodes that are not in the
    file stay as they are. Raises ConfigurationError that lists all differences that no call can
    remove.
    """
    _check_reachable(difference)
    return tuple(
        Call.make(record, "NodeRegistry", function, *arguments)
        for function, arguments in (
            *_additions(difference),
            *_status_changes(difference, True),
            *_status_changes(difference, False),
            *_transfers(difference),
        )
    )


def _compare(desired: DesiredNode, found: RegisteredNode | None) -> NodeDifference:
    wanted = {
        "status": "enabled" if desired.is_enabled else "disabled",
        "holder": desired.holder,
        "http address": printable(desired.http_address),
    }
    facts = dict.fromkeys(wanted, NONE) if found is None else node_facts(found)
    fields = tuple(
        FieldDifference(name, facts[name], value)
        for name, value in wanted.items()
        if facts[name] != value
    )
    return NodeDifference(desired, found, fields)


def _check_reachable(difference: RegistryDifference) -> None:
    faults = Faults("plan")
    enabled = {each.node.http_address: each.node.node_id for each in difference.unlisted_enabled}
    for each in difference.nodes:
        if each.found is None:
            _check_addition(each.desired, enabled, faults)
        elif each.found.node.http_address != each.desired.http_address:
            expected = (
                f'"{printable(each.found.node.http_address)}", as node {each.found.node.node_id} '
                "keeps its URL (XIP-49 §3.1.1); for another one, let its holder call "
                "`chainkit registry set-url`, or disable it and add a node with a new key"
            )
            got = f'"{printable(each.desired.http_address)}"'
            faults.add(expected, got, f"{each.desired.path}.http_address")
    faults.raise_all()


def _check_addition(desired: DesiredNode, enabled: dict[str, int], faults: Faults) -> None:
    if not desired.is_enabled:
        expected = "enabled for a new node: add it first, and disable it once it has an id"
        faults.add(expected, "disabled", f"{desired.path}.status")
    node_id = enabled.get(desired.http_address)
    if node_id is not None:
        expected = (
            f"the key of node {node_id}, which keeps its key (XIP-49 §3.1.1); for a node that "
            f"replaces it, list node {node_id} with its own key as disabled, too"
        )
        got = f"a new key, of {desired.key_address}, at the same URL"
        faults.add(expected, got, f"{desired.path}.key")


def _additions(difference: RegistryDifference) -> Iterator[_FunctionCall]:
    for each in difference.nodes:
        if each.found is None:
            wanted = each.desired
            yield "addNode", (wanted.holder, wanted.key, wanted.http_address)


def _status_changes(difference: RegistryDifference, is_enabled: bool) -> Iterator[_FunctionCall]:
    for each in difference.nodes:
        if each.found is None or each.desired.is_enabled != is_enabled:
            continue
        if each.found.node.is_enabled != is_enabled:
            yield "updateHealth", (each.found.node.node_id, is_enabled)


def _transfers(difference: RegistryDifference) -> Iterator[_FunctionCall]:
    for each in difference.nodes:
        if each.found is not None and each.found.holder != each.desired.holder:
            node_id = each.found.node.node_id
            yield "transferFrom", (each.found.holder, each.desired.holder, node_id)
