"""A network as a person reads it on a terminal: who answers, who is accused, who holds how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.inspection.network import (
    Accusation,
    NetworkStatus,
    NodeAnswer,
    find_network_attention,
)
from chainkit_node.inspection.tables import columns, section
from chainkit_node.inspection.text_form import moment
from chainkit_node.inspection.words import number

_NODES_ABREAST: Final = 6
"""Columns of nodes that fit 100 columns of text."""


def network_as_text(network: NetworkStatus) -> str:
    """Return a look as lines, with the reasons for attention first."""
    answering = sum(not each.is_silent for each in network.nodes)
    when = moment(int(network.taken_at * NANOSECONDS_PER_SECOND))
    attention = [each.text for each in find_network_attention(network)]
    lines = [
        *section("network", [f"{answering} of {len(network.nodes)} nodes answer, {when}"]),
        *section("registry", [f"block {network.block.number} {network.block.hash[:10]}…"]),
        *section("attention", attention or ["none"]),
        "",
        *columns(
            ("node", "status", "health", "answer", "reports", "URL"),
            map(_node, network.nodes),
        ),
        *section("", list(_errors(network.nodes))),
        "",
        *_held(network),
        *section("accused", list(map(_accusation, network.accusations)) or ["nobody"]),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _node(each: NodeAnswer) -> tuple[str, ...]:
    return (
        str(each.node_id),
        "enabled" if each.is_enabled else "disabled",
        "silent" if each.is_silent else each.health or "not told",
        "-" if each.seconds is None else f"{each.seconds * 1000:.0f} ms",
        number(each.reports),
        each.url,
    )


def _errors(nodes: Sequence[NodeAnswer]) -> Iterator[str]:
    for each in nodes:
        if each.error is not None:
            yield f"node {each.node_id}: {each.error}"


def _held(network: NetworkStatus) -> Iterator[str]:
    """Yield originators against nodes: held ids, with the lag behind them in brackets."""
    for start in range(0, len(network.nodes), _NODES_ABREAST):
        some = network.nodes[start : start + _NODES_ABREAST]
        heads = ("originator", "highest", *(f"at {each.node_id}" for each in some))
        rows = (
            (
                str(originator_id),
                str(highest),
                *(_cell(network, each, originator_id) for each in some),
            )
            for originator_id, highest in sorted(network.highest.items())
        )
        yield from columns(heads, rows)
        yield ""


def _cell(network: NetworkStatus, node: NodeAnswer, originator_id: int) -> str:
    held, lag = node.held.get(originator_id), network.lag(node, originator_id)
    if held is None:
        return "-" if node.is_silent else "?"
    return f"{held} (-{lag})" if lag else str(held)


def _accusation(each: Accusation) -> str:
    hosts = ", ".join(map(str, each.hosts))
    return f"node {each.node_id}: {each.proved} proved, {each.claimed} claimed, hosted by {hosts}"
