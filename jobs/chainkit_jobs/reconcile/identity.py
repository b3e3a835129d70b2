"""Finds the node of each export: by the auditor's id, the manifest's key, the signatures.

An export may name any key. So where two exports name one key, their contents decide: only the key's
owner can sign new envelopes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from chainkit.errors import ConfigurationError, MalformedEnvelope
from chainkit.exports import PARQUET_ERRORS
from chainkit.protocol.envelope import blockchain_proof_digest, parse_originator_envelope
from chainkit.types import Node
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.inputs import Inputs, NamedExport, Refused, shown_folder
from chainkit_jobs.reconcile.nodes import Registry
from chainkit_jobs.reconcile.served import signature_problem
from chainkit_jobs.sources import RAW_ENVELOPES, Export, envelopes_problem, table_paths

_GROUPS: Final = 32
_GROUP_ROWS: Final = 32
"""Row groups, and rows of each, whose signatures decide between exports that claim one key."""


@dataclass(frozen=True, slots=True)
class Identified:
    """The exports whose nodes are known, and the others."""

    nodes: tuple[NodeExport, ...]
    """By node id."""
    refused: tuple[Refused, ...]


def identify_nodes(inputs: Inputs, registry: Registry) -> Identified:
    """Find the registered node of each export.

    An export belongs to the node whose id the auditor gave with it, or whose key is in its
    manifest. Raises ConfigurationError where the registry holds no node of an id that was given.
    """
    claims: dict[int, list[NamedExport]] = {}
    refused = []
    for named in inputs.nodes:
        found = _claimed(named, registry)
        if isinstance(found, str):
            refused.append(_refused(named, found))
        else:
            claims.setdefault(found.node_id, []).append(named)
    nodes = []
    for node_id, claimants in sorted(claims.items()):
        node = registry.by_id(node_id)
        owned = _owned(claimants, node, inputs.faults)
        if owned:
            nodes.append(NodeExport(node, owned[0], owned[1:]))
        refused += _losers(node_id, claimants, owned, inputs.faults)
    return Identified(tuple(nodes), tuple(refused))


def registry_of(inputs: Inputs, at_block: int) -> Registry:
    """Return the nodes that the exports name, where the chain has no registry to ask.

    The auditor gives each id, and the export's manifest the key: nothing proves the key's owner.
    """
    nodes = {
        node_id: Node(node_id, bytes.fromhex(export.manifest.node_public_key[2:]), "", True)
        for node_id, export in inputs.nodes
        if node_id is not None and export.manifest.node_public_key is not None
    }
    hint = "the chain export names no registry: give ids and folders (--node ID=DIR)"
    return Registry(nodes, at_block, hint)


def _refused(named: NamedExport, reason: str) -> Refused:
    node_id, export = named
    return Refused(shown_folder(export.directory), node_id, reason)


def _claimed(named: NamedExport, registry: Registry) -> Node | str:
    """Return the node that an export claims to be of, or why there is none."""
    node_id, export = named
    key, folder = export.manifest.node_public_key, shown_folder(export.directory)
    if node_id is None:
        if key is None:
            return f"export {folder}: expected node_public_key in its manifest, got none"
        try:
            return registry.by_key(key, folder)
        except ConfigurationError as error:
            return str(error)
    node = registry.by_id(node_id)
    owner = node if key is None else registry.find_key(key)
    if owner is node:
        return node
    # An id on the command line must not hold a node to signatures that it never claimed.
    whose = "that is not registered" if owner is None else f"of node {owner.node_id}"
    return (
        f"node {node_id}: expected an export with its registered key ({folder}), got "
        f"another: its manifest names the key {whose}"
    )


def _owned(
    claimants: Sequence[NamedExport], node: Node, faults: Mapping[Path, str]
) -> tuple[Export, ...]:
    """Return the node's exports, first the one to compare with the chain; none if nothing shows it.

    A node has one database for its operator to export, and can be asked any number of times.
    """
    exports = [export for _, export in claimants]
    if len(exports) == 1:
        return tuple(exports)
    named = [export for node_id, export in claimants if node_id is not None]
    sound = [each for each in exports if _problem(each, faults) is None]
    ours = [each for each in sound if each in named or _is_signed(each, node.signing_key)]
    answers = [each for each in ours if each.manifest.is_of_answers]
    written = [each for each in named if not each.manifest.is_of_answers]
    written = written or [each for each in ours if not each.manifest.is_of_answers]
    if len(written) <= 1:
        return (*written, *answers)
    return tuple(each for each in answers if each in named)


def _losers(
    node_id: int,
    claimants: Sequence[NamedExport],
    owned: Sequence[Export],
    faults: Mapping[Path, str],
) -> Iterator[Refused]:
    folders = [shown_folder(export.directory) for _, export in claimants]
    undecided = (
        f"node {node_id}: {' and '.join(folders)} name its key, and their signatures do not tell "
        f"which is its export: give its id with the right one (--node {node_id}=DIR)"
    )
    for named, folder in zip(claimants, folders, strict=True):
        if not owned:
            yield _refused(named, undecided)
        elif named[1] not in owned and (problem := _problem(named[1], faults)) is not None:
            yield _refused(named, f"export {folder}, of node {node_id}: {problem}")
        elif named[1] not in owned:
            yield _refused(
                named,
                f"export {folder}: its manifest names the key of node {node_id}, whose export is "
                f"{shown_folder(owned[0].directory)}",
            )


def _problem(export: Export, faults: Mapping[Path, str]) -> str | None:
    """Return why an export cannot be used, or None where it can."""
    return faults.get(export.directory) or envelopes_problem(export)


def _is_signed(export: Export, key: bytes) -> bool:
    """Return whether an export holds envelopes, and every sampled envelope is signed with a key.

    In a node's answers, which an auditor gathered himself, most envelopes suffice: the others are
    the faults that the auditor looks for.
    """
    try:
        envelopes = list(_sample(export))
    except PARQUET_ERRORS:
        return False
    signed = sum(_is_by(each, key) for each in envelopes)
    needed = len(envelopes) // 2 + 1 if export.manifest.is_of_answers else len(envelopes)
    return bool(envelopes) and signed >= needed


def _is_by(envelope: bytes, key: bytes) -> bool:
    try:
        served = parse_originator_envelope(envelope)
    except MalformedEnvelope:
        return False
    digest = blockchain_proof_digest(served.unsigned_originator_envelope, served.transaction_hash)
    return signature_problem(served.node_signature, digest, key) is None


def _sample(export: Export) -> Iterator[bytes]:
    """Return envelopes from row groups all over an export."""
    groups: list[tuple[Path, int]] = []
    for path in table_paths(export, "envelopes", RAW_ENVELOPES):
        groups += ((path, number) for number in range(pq.read_metadata(path).num_row_groups))
    for path, number in groups[:: -(-len(groups) // _GROUPS) or 1]:
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(_GROUP_ROWS, row_groups=[number], columns=["envelope"])
            batch: Any = next(batches, None)
        yield from batch.column("envelope").to_pylist() if batch is not None else ()
