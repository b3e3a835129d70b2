"""A whole network at one moment, as seen from outside: typed and bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from chainkit.text.counting import counted
from chainkit_node.inspection.snapshot import BlockStatus

FORMAT: Final = 1
"""Number of the JSON's form."""


class NetworkReason(StrEnum):
    """Reasons for a person to look at the network; ``docs/node.md`` has a row for each."""

    NODE_ACCUSED = "node_accused"
    NODE_SILENT = "node_silent"
    NODE_NOT_SERVING = "node_not_serving"


@dataclass(frozen=True, slots=True)
class NetworkAttention:
    """One reason, in words."""

    reason: NetworkReason
    node_id: int
    text: str


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The answers of one node."""

    node_id: int
    url: str
    is_enabled: bool
    health: str | None
    """As ``grpc.health.v1`` names it, such as ``SERVING``; None where the node did not say."""
    error: str | None
    """Why answers are missing; None where the node gave all."""
    seconds: float | None
    """Seconds until the node's first answer; None where none came."""
    held: Mapping[int, int | None]
    """Highest sequence id that the node holds, by originator; None where no answer came in time."""
    reports: int | None
    """Hosted reports, as far as they were read; None where the node did not say."""
    lacks: tuple[str, ...] = ()
    """Methods that the node does not have, in words: it is of another make."""

    @property
    def is_silent(self) -> bool:
        """Whether no answer came."""
        return self.seconds is None


@dataclass(frozen=True, slots=True)
class Accusation:
    """Reports about one node, on all nodes together."""

    node_id: int
    """The accused."""
    proved: int
    """Failures whose evidence was judged here as a proof; each counts once."""
    claimed: int
    """Reports that prove nothing by themselves, on all hosts."""
    hosts: tuple[int, ...]
    """Nodes that host such a report."""


@dataclass(frozen=True, slots=True)
class NetworkStatus:
    """The registry's nodes, and their answers."""

    taken_at: float
    """Seconds since 1970."""
    block: BlockStatus
    """The block as of which the registry was read."""
    nodes: tuple[NodeAnswer, ...]
    """By id."""
    highest: Mapping[int, int]
    """Highest sequence id that is known of each originator, by its id: by the chain's counter, or
    by the node that holds most."""
    accusations: tuple[Accusation, ...]
    """By the accused's id."""
    sparse: frozenset[int] = frozenset()
    """Originators whose ids have gaps and come in any order (ADR 50)."""

    def lag(self, node: NodeAnswer, originator_id: int) -> int | None:
        """Return how many ids of an originator a node lacks.

        None where the node did not say, and where ids are sparse: their difference counts nothing.
        """
        held = node.held.get(originator_id)
        if held is None or originator_id in self.sparse:
            return None
        return max(self.highest[originator_id] - held, 0)


def find_network_attention(network: NetworkStatus) -> tuple[NetworkAttention, ...]:
    """Return all reasons for attention, the gravest first; none where all is well."""
    return (*_accused(network), *_silent(network))


def network_as_json(network: NetworkStatus) -> dict[str, Any]:
    """Return a look as scripts read it; originators' ids are names, as JSON has it."""
    nodes = [
        {
            **asdict(each),
            "held": _named(each.held),
            "lag": _named({other: network.lag(each, other) for other in each.held}),
        }
        for each in network.nodes
    ]
    return {
        "format": FORMAT,
        "taken_at": network.taken_at,
        "attention": [asdict(each) for each in find_network_attention(network)],
        "block": asdict(network.block),
        "nodes": nodes,
        "highest": _named(network.highest),
        "accusations": [asdict(each) for each in network.accusations],
    }


def _accused(network: NetworkStatus) -> Iterator[NetworkAttention]:
    for each in network.accusations:
        if each.proved:
            failures = counted(each.proved, "proved failure")
            hosts = ", ".join(map(str, each.hosts))
            text = f"node {each.node_id}: {failures}, hosted by {hosts}"
            yield NetworkAttention(NetworkReason.NODE_ACCUSED, each.node_id, text)


def _silent(network: NetworkStatus) -> Iterator[NetworkAttention]:
    for each in network.nodes:
        if not each.is_enabled:
            continue
        if each.is_silent:
            text = f"node {each.node_id} does not answer: {each.error}"
            yield NetworkAttention(NetworkReason.NODE_SILENT, each.node_id, text)
        elif each.health not in (None, "SERVING"):
            text = f"node {each.node_id} says {each.health}"
            yield NetworkAttention(NetworkReason.NODE_NOT_SERVING, each.node_id, text)


def _named(numbers: Mapping[int, int | None] | Mapping[int, int]) -> dict[str, int | None]:
    return {str(each): value for each, value in numbers.items()}
