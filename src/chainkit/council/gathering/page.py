"""The page of a gathering: what each node answered, and which node has which report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainkit.contracts.registry import status_word
from chainkit.council.gathering.gatherer import Gathered
from chainkit.text.json_values import reference_as_json
from chainkit.text.printable import printable
from chainkit.types import BlockReference


def gather_page(
    results: Sequence[Gathered], chain_id: int, block: BlockReference, after_ns: int
) -> dict[str, Any]:
    """Return the page, for scripts and as ``gather.json``; the order of nodes is that of ids."""
    ordered = sorted(results, key=lambda each: each.host.node.node_id)
    hosts = _hosts(ordered)
    return {
        "chain_id": chain_id,
        "block": reference_as_json(block),
        # Numbers of 64 bits as text: JSON readers round them.
        "after_ns": str(after_ns),
        "nodes": [_node(each, len(left_out(each, ordered))) for each in ordered],
        "reports": [
            {
                "digest": digest.hex(),
                "node_id": listed.accused_id,
                "misbehavior": listed.misbehavior.name,
                "submitted_by_node": listed.is_from_node,
                "hosts": hosts[digest],
            }
            for digest, listed in sorted(_listed(ordered).items())
        ],
        "complete": all(each.is_complete for each in ordered),
    }


def left_out(result: Gathered, results: Sequence[Gathered]) -> list[bytes]:
    """Return the digests of clients' reports that another node has, and this node has not.

    Clients submit to several nodes (XIP-49 §3.2.8), and may have chosen others than this node: many
    left-out reports are a reason to ask the node.
    """
    others = {
        digest
        for each in results
        for digest, listed in each.listed.items()
        if not listed.is_from_node
    }
    return sorted(others - result.listed.keys())


def _listed(results: Sequence[Gathered]) -> dict[bytes, Any]:
    return {digest: listed for each in results for digest, listed in each.listed.items()}


def _hosts(results: Sequence[Gathered]) -> dict[bytes, list[int]]:
    hosts: dict[bytes, list[int]] = {}
    for each in results:
        for digest in each.listed:
            hosts.setdefault(digest, []).append(each.host.node.node_id)
    return hosts


def _node(result: Gathered, left_out: int) -> dict[str, Any]:
    pages = result.pages
    return {
        "node_id": result.host.node.node_id,
        "status": status_word(result.host.node),
        "url": printable(result.host.url),
        "reports": pages.reports,
        "new": result.new,
        "repeated": pages.repeated,
        "wrong_key": pages.wrong_key,
        "malformed": pages.malformed,
        "left_out": left_out,
        "next_after_ns": str(pages.after_ns),
        "fault": result.fault,
        "complete": result.is_complete,
    }
