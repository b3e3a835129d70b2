"""A network as a person reads it on a terminal: who answers, who is accused, who holds how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from chainkit.terminal.facts import LINE_WIDTH
from chainkit.terminal.tables import columns, section
from chainkit.types import NANOSECONDS_PER_SECOND
from chainkit_node.inspection.network import (
    Accusation,
    NetworkStatus,
    NodeAnswer,
    find_network_attention,
)
from chainkit_node.inspection.text_form import moment
from chainkit_node.inspection.words import number

_GAP: Final = 2
"""Columns between two cells."""
_LABELS: Final = 15
"""Columns of an originator's id, and the gap behind the highest one's."""


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
        if each.lacks:
            yield f"node {each.node_id} lacks {', '.join(each.lacks)}"


def _held(network: NetworkStatus) -> Iterator[str]:
    """Yield originators against nodes: held ids, with the lag behind them in brackets."""
    originators = sorted(network.highest.items())
    cells = {
        node.node_id: [
            f"at {node.node_id}",
            *(_cell(network, node, each) for each, _ in originators),
        ]
        for node in network.nodes
    }
    first = ["originator", *(str(each) for each, _ in originators)]
    second = ["highest", *(str(highest) for _, highest in originators)]
    # Tables stand one above the other where they do not fit side by side.
    widest = max((len(each) for column in cells.values() for each in column), default=0) + _GAP
    left = LINE_WIDTH - max(len(each) for each in (*first, *second)) - _LABELS
    abreast = max(left // widest, 1)
    for start in range(0, len(network.nodes), abreast):
        some = [cells[node.node_id] for node in network.nodes[start : start + abreast]]
        heads, *rows = zip(first, second, *some, strict=True)
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
