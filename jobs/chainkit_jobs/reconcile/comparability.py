"""The nodes that can be compared, and the blocks that both exports cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from chainkit.exports import Manifest
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, Node
from chainkit_jobs.counters import counters_of
from chainkit_jobs.reconcile.inputs import Refused, shown_folder
from chainkit_jobs.sources import Export

HIGHEST_SEQUENCE: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class NodeExport:
    """A node's export, and the registry's entry for the comparison."""

    node: Node
    export: Export
    others: tuple[Export, ...] = ()
    """Further exports of the same node: compared with this one, and not with the chain."""

    @property
    def manifest(self) -> Manifest:
        """The export's manifest."""
        return self.export.manifest

    @property
    def highest_required(self) -> int:
        """The sequence of originator 0 above which the export shows no missing payloads.

        A node that was asked need not have followed the chain up to the block of that time.
        """
        return self.manifest.answers.get(BLOCKCHAIN_ORIGINATOR_ID, HIGHEST_SEQUENCE)


@dataclass(frozen=True, slots=True)
class Comparability:
    """Which nodes can be compared, and a sentence for all that cannot."""

    comparable: tuple[NodeExport, ...]
    set_aside: Mapping[int, str]
    """Node id to the reason why the node was not compared."""
    left_out: tuple[str, ...]
    """Blocks of comparable nodes that were not compared."""
    refused: tuple[Refused, ...] = ()
    """The exports that are no node's, or whose manifest cannot be read."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each export that was not compared, or for two exports with one node."""
        refused = dict.fromkeys(each.reason for each in self.refused)
        return (*refused, *self.set_aside.values())


def set_aside(comparability: Comparability, unreadable: Mapping[int, str]) -> Comparability:
    """Take nodes out whose rows turned out to be unreadable: node id to why."""
    comparable = tuple(
        node for node in comparability.comparable if node.node.node_id not in unreadable
    )
    reasons = {
        node_id: f"node {node_id}: its export cannot be read: {reason}"
        for node_id, reason in sorted(unreadable.items())
    }
    return replace(
        comparability, comparable=comparable, set_aside={**comparability.set_aside, **reasons}
    )


def compare_ranges(
    chain: Export,
    nodes: Sequence[NodeExport],
    block_hashes: Mapping[int, bytes],
    problems: Mapping[int, str] = MappingProxyType({}),
) -> Comparability:
    """Decide which part of each node's export this chain export can check.

    ``block_hashes`` holds the chain's hash at the last block of each node's export, where the chain
    export has that block; ``problems`` has by node id why an export cannot be read.
    """
    comparable, set_aside, left_out, refused = [], {}, [], []
    for node in nodes:
        obstacle = problems.get(node.node.node_id)
        obstacle = obstacle or _obstacle(chain.manifest, node.manifest, block_hashes)
        if obstacle is not None:
            set_aside[node.node.node_id] = f"node {node.node.node_id}: {obstacle}"
            continue
        others, strange = _others(chain.manifest, node, block_hashes)
        comparable.append(replace(node, others=others))
        refused += strange
        left_out.extend(_left_out(chain.manifest, comparable[-1]))
    return Comparability(tuple(comparable), set_aside, tuple(left_out), tuple(refused))


def _others(
    chain: Manifest, node: NodeExport, hashes: Mapping[int, bytes]
) -> tuple[tuple[Export, ...], list[Refused]]:
    """Divide a node's other exports into those of this chain, and those that are not."""
    others, refused = [], []
    for export in node.others:
        obstacle = _obstacle(chain, export.manifest, hashes)
        if obstacle is None:
            others.append(export)
        else:
            folder, node_id = shown_folder(export.directory), node.node.node_id
            refused.append(Refused(folder, node_id, f"node {node_id}: {folder}: {obstacle}"))
    return tuple(others), refused


def _obstacle(chain: Manifest, node: Manifest, hashes: Mapping[int, bytes]) -> str | None:
    if node.from_block > node.to_block:
        return (
            f"its export says that it begins at block {node.from_block}, after its last block "
            f"{node.to_block}"
        )
    if node.to_block > chain.to_block:
        return (
            f"its export ends at block {node.to_block}, beyond the chain export's last block "
            f"{chain.to_block}: export the chain again, up to that block or further"
        )
    if node.to_block < chain.from_block:
        return (
            f"its export ends at block {node.to_block}, before the chain export's first block "
            f"{chain.from_block}: they have no block in common"
        )
    found = hashes.get(node.to_block)
    if found is None or "0x" + found.hex() != node.to_block_hash.lower():
        on_chain = "no block" if found is None else f"0x{found.hex()}"
        return (
            f"its export ends on another fork: its block {node.to_block} is "
            f"{node.to_block_hash}, the chain export has {on_chain}"
        )
    return None


def _first_payload_block(chain: Manifest) -> int | None:
    """Return the block below which nobody has a payload to serve; None where it is not known."""
    return chain.first_block if chain.first_payload_block is None else chain.first_payload_block


def _left_out(chain: Manifest, node: NodeExport) -> list[str]:
    own = node.manifest
    first = max(chain.from_block, _first_payload_block(chain) or 0)
    gaps = [
        (first, own.from_block - 1, "before its export begins"),
        (own.from_block, chain.from_block - 1, "before the chain export begins"),
        (own.to_block + 1, chain.to_block, "which its export does not reach"),
    ]
    subject = f"node {node.node.node_id}"
    sentences = [
        f"{subject}: {_blocks(first, last)}, {reason}"
        for first, last, reason in gaps
        if first <= last
    ]
    sentences += (
        f"{subject}: {shown_folder(other.directory)} with the chain: it was compared with "
        f"{shown_folder(node.export.directory)}"
        for other in node.others
    )
    return sentences + [f"{subject}: {each}" for each in _not_answered(chain, own.answers)]


def _not_answered(chain: Manifest, answers: Mapping[int, int]) -> Iterator[str]:
    """Return for each originator the part that a node's answers leave open."""
    listed, counters = chain.payload_contracts or (), counters_of(chain)
    sparse = {each["originator_id"] for each in listed if each["sequence_ids"] == "sparse"}
    for originator_id, last in answers.items():
        of = f" of originator {originator_id}" if listed else ""
        counted = counters.get(originator_id)
        if originator_id in sparse:
            yield (
                f"which envelopes{of} it lacks or invented: their ids are sparse, and no answer "
                "tells up to which block it had followed the chain"
            )
        elif counted is None or counted.after is None or last < counted.after:
            yield (
                f"whether it serves sequences{of} above {last}, the last that it answered when it "
                "was asked"
            )


def _blocks(first: int, last: int) -> str:
    return f"block {first}" if first == last else f"blocks {first} to {last}"
