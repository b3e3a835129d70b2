"""The output of ``chainkit council triage``, for people and for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from chainkit.contracts.registry import status_word
from chainkit.council.proposal.grounds import LONGEST_REASON
from chainkit.council.triage.thresholds import THRESHOLDS
from chainkit.council.triage.values import (
    Dismissed,
    RankedNode,
    Ranking,
    Reporter,
    Tally,
    independent,
    peers_by_sample,
)
from chainkit.signatures import address_of
from chainkit.terminal.facts import echo_fact, echo_wrapped
from chainkit.text.counting import counted
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json
from chainkit.text.printable import printable
from chainkit.types import BlockReference

_HEADINGS: Final = ("node", "status", "severity", "proved", "claimed", "reporters")
_MOST_REPORTERS: Final = 4
"""Reporters of a type that people are shown; --json has all reporters."""
_MOST_DISMISSED: Final = 20
"""Pieces that were not counted, as many as people are shown; --json contains all."""


def echo_ranking(ranking: Ranking, block: BlockReference | None) -> None:
    """Print the accused nodes, the most urgent first, then what was not counted, and why."""
    if block is None:
        echo_fact("status", "not read: it needs --rpc")
    else:
        echo_fact("read at", f"block {block}")
    if ranking.nodes:
        click.echo()
        _echo_row(_HEADINGS, "recommendation")
    for node in ranking.nodes:
        severity = node.severity or "-"
        counts = (node.proved, node.claimed, node.reporters)
        _echo_row((node.node_id, node.status, severity, *counts), node.recommendation)
        for tally in node.tallies:
            echo_wrapped(_tally_words(tally), 8)
    click.echo()
    _echo_dismissed(ranking.dismissed)
    disable = ", ".join(f"node {node.node_id}" for node in ranking.to_disable)
    echo_fact("disable", disable or "none")
    if not ranking.is_complete:
        echo_fact("caution", "not everything could be checked: see what was not counted")


def ranking_json(
    ranking: Ranking, block: BlockReference | None, chain_id: int, needed: int
) -> dict[str, Any]:
    """Return the same for a script; ``needed`` is how many reporters a sample asks for."""
    return {
        "chain_id": chain_id,
        "block": None if block is None else reference_as_json(block),
        "reporters_needed": needed,
        "nodes": [_node_json(node) for node in ranking.nodes],
        "disable": [node.node_id for node in ranking.to_disable],
        "not_counted": [
            {
                "path": each.source,
                "reason": each.reason,
                "node_id": each.node_id,
                "unchecked": each.is_unchecked,
            }
            for each in ranking.dismissed
        ],
        "complete": ranking.is_complete,
    }


def default_reason(nodes: Sequence[RankedNode]) -> str:
    """Return why nodes should be disabled, as short as a proposal's reason must be."""
    reasons = "; ".join(_reason(node) for node in nodes)
    if len(reasons) <= LONGEST_REASON:
        return reasons
    return f"{len(nodes)} nodes, as the evidence shows of each"


def _reason(node: RankedNode) -> str:
    shown = [each for each in node.tallies if each.proved] or _of_largest_sample(node)
    types = ", ".join(each.misbehavior.name for each in shown)
    how = "proved" if node.proved else "reported"
    count = independent(reporter for each in shown for reporter in each.reporters)
    # The key of a reporter who is no registered node establishes nobody.
    by = f" by {counted(count, 'reporter')}" if count else ""
    return f"node {node.node_id}: {types}, {how}{by}"


def _of_largest_sample(node: RankedNode) -> list[Tally]:
    peers = peers_by_sample(node.tallies)
    largest = max(peers, key=lambda each: peers[each], default=None)
    return [each for each in node.tallies if THRESHOLDS[each.misbehavior].sample is largest]


def _echo_row(cells: Sequence[object], recommendation: str) -> None:
    node, status, severity, proved, claimed, reporters = cells
    click.echo(
        f"{node:>6}  {status:<8}  {severity:<8}  {proved:>6}  {claimed:>7}  {reporters:>9}  "
        f"{recommendation}"
    )


def _tally_words(tally: Tally) -> str:
    counts = {"proved": tally.proved, "claimed": tally.claimed}
    totals = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    shown = [_reporter_words(each) for each in tally.reporters[:_MOST_REPORTERS]]
    if (more := len(tally.reporters) - len(shown)) > 0:
        shown.append(f"and {more} more (--json tells all)")
    return f"{tally.misbehavior.name}: {totals}, by {', '.join(shown)}"


def _reporter_words(reporter: Reporter) -> str:
    if reporter.node is None:
        return f"{address_of(reporter.key)} (not established)"
    node = reporter.node.node
    return f"node {node.node_id}" + ("" if node.is_enabled else " (disabled)")


def _echo_dismissed(dismissed: Sequence[Dismissed]) -> None:
    if not dismissed:
        return
    click.echo("not counted")
    for each in dismissed[:_MOST_DISMISSED]:
        echo_wrapped(printable(each.source), 2)
        echo_wrapped(printable(each.reason), 6)
    if (more := len(dismissed) - _MOST_DISMISSED) > 0:
        click.echo(f"  … and {more} more; --json tells all")
    click.echo()


def _node_json(node: RankedNode) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "status": node.status,
        "severity": node.severity,
        "proved": node.proved,
        "claimed": node.claimed,
        "reporters": node.reporters,
        "action": node.action,
        "recommendation": node.recommendation,
        "types": [_tally_json(tally) for tally in node.tallies],
        "grounds": list(node.grounds),
    }


def _tally_json(tally: Tally) -> dict[str, Any]:
    return {
        "type": tally.misbehavior.value,
        "name": tally.misbehavior.name,
        "severity": tally.misbehavior.severity,
        "proved": tally.proved,
        "claimed": tally.claimed,
        "falls": [asdict(each) for each in tally.falls],
        "reporters": [_reporter_json(each) for each in tally.reporters],
    }


def _reporter_json(reporter: Reporter) -> dict[str, Any]:
    node = reporter.node
    return {
        "public_key": hex0x(reporter.key),
        "address": address_of(reporter.key),
        "node_id": None if node is None else node.node.node_id,
        "status": None if node is None else status_word(node.node),
        "holder": None if node is None else node.holder,
    }
