"""The status of a database: how far, how much, how final, and which reorgs there were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Table, func, select

from chainkit.contracts.registry import status_word
from chainkit.text.hexadecimal import hex0x
from chainkit.text.json_values import reference_as_json
from chainkit.types import BlockReference, Node
from chainkit_indexer.finality import NOTHING_FINAL
from chainkit_indexer.registry.history import nodes_at, read_followed_history
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import BlockCut, cuts_above, sequence_ids_up_to
from chainkit_indexer.storage.blocks import read_final_block, read_position
from chainkit_indexer.storage.identity import Identity
from chainkit_indexer.storage.provenance import read_runs
from chainkit_indexer.storage.store import Store
from chainkit_indexer.types import Provenance, ProvenanceRun

SHOWN_REORGS: Final = 10


@dataclass(frozen=True, slots=True)
class ReorgSummary:
    """A reorg and the outcome of the payloads that it took back."""

    reorg_id: int
    ancestor: BlockReference
    old_head: BlockReference
    depth: int
    rewound_to: int | None
    """The height that the operator asked for, if this was a rewind; None for a reorg."""
    kept: int
    moved: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Status:
    """One state of a database."""

    database: str
    identity: Identity
    cursor: BlockReference | None
    """None before the first page."""
    final_block: int | None
    """None where nothing is final yet."""
    sequence_ids: Mapping[int, int]
    """The node's cursor over originators (XIP-49 §3.2.2)."""
    envelopes: int
    """By the sequence ids, of which each is an envelope or in quarantine: rows are not counted,
    because that takes the longer the more there are. ``index verify`` looks at every row. Only rows
    of sparse sequence ids are counted."""
    soft_envelopes: int
    """Those above the final block, which a reorg may take back."""
    quarantined: Mapping[str, int]
    """Reason to count."""
    reorg_count: int
    reorgs: tuple[ReorgSummary, ...]
    """The newest SHOWN_REORGS, oldest first."""
    registry: RegistryState | None
    """None where no registry was followed so far."""
    established: Mapping[Provenance, int]
    """How many blocks were established how, the strongest first; without those that are none."""


@dataclass(frozen=True, slots=True)
class RegistryState:
    """A registry's entries about this node and the others (XIP-49 §3.2.3)."""

    block: BlockReference
    """As of which block."""
    node_id: int | None
    """This node's entry; None where its key is not registered."""
    status: str
    enabled_nodes: tuple[int, ...]

    @classmethod
    def of(
        cls, nodes: Sequence[Node], node_public_key: bytes, block: BlockReference
    ) -> RegistryState:
        """Return a registry's entries about a node, from a listing as of a block."""
        own = next((node for node in nodes if node.signing_key == node_public_key), None)
        return cls(
            block=block,
            node_id=own.node_id if own else None,
            status=status_word(own) if own else "not registered",
            enabled_nodes=tuple(node.node_id for node in nodes if node.is_enabled),
        )


def read_status(store: Store) -> Status:
    """Return the state of a database as of one moment."""
    with store.reading() as connection:
        return read_status_within(connection, store)


def read_status_within(connection: Connection, store: Store) -> Status:
    """Return the state of a database as a transaction on it sees it."""
    position = read_position(connection)
    final_block = read_final_block(connection)
    sequence_ids = position.sequence_ids if position else {}
    quarantined = _by_reason(connection)
    return Status(
        database=store.name,
        identity=store.identity,
        cursor=position.header.reference if position else None,
        final_block=None if final_block == NOTHING_FINAL else final_block,
        sequence_ids=sequence_ids,
        envelopes=_envelopes_above(connection, store.identity, sequence_ids, NOTHING_FINAL),
        soft_envelopes=_envelopes_above(connection, store.identity, sequence_ids, final_block),
        quarantined=quarantined,
        reorg_count=connection.scalar(select(func.count()).select_from(schema.reorgs)) or 0,
        reorgs=_reorgs(connection),
        registry=read_registry_state(connection, store.identity.node_public_key),
        established=_established(read_runs(connection)),
    )


def _established(runs: Sequence[ProvenanceRun]) -> dict[Provenance, int]:
    counts = {
        each: sum(run.blocks for run in runs if run.provenance is each) for each in Provenance
    }
    return {each: count for each, count in counts.items() if count}


def _by_reason(connection: Connection) -> dict[str, int]:
    reason = schema.quarantine.c.reason
    rows = connection.execute(select(reason, func.count()).group_by(reason).order_by(reason))
    return {row[0]: row[1] for row in rows}


def _envelopes_above(
    connection: Connection, identity: Identity, sequence_ids: Mapping[int, int], block_number: int
) -> int:
    sparse = identity.sparse_originator_ids
    below = sequence_ids_up_to(connection, sequence_ids, block_number, sparse)
    count = 0
    for cut in cuts_above(below, block_number, sparse):
        if cut.originator_id in sparse:
            count += _count(connection, schema.envelope_logs, cut)
        else:
            posted = sequence_ids[cut.originator_id] - cut.last
            count += posted - _count(connection, schema.quarantine, cut)
    return count


def _count(connection: Connection, table: Table, cut: BlockCut) -> int:
    query = select(func.count()).select_from(table).where(cut.above(table.c))
    return connection.scalar(query) or 0


def _reorgs(connection: Connection) -> tuple[ReorgSummary, ...]:
    journal, reorgs = schema.journal.c, schema.reorgs.c
    newest = select(schema.reorgs).order_by(reorgs.id.desc()).limit(SHOWN_REORGS)
    rows = connection.execute(newest).all()[::-1]
    counted = (
        select(journal.reorg_id, journal.outcome, func.count())
        .where(journal.reorg_id.in_([row.id for row in rows]))
        .group_by(journal.reorg_id, journal.outcome)
    )
    outcomes = {(row[0], row[1]): row[2] for row in connection.execute(counted)}
    return tuple(
        ReorgSummary(
            reorg_id=row.id,
            ancestor=BlockReference(row.ancestor_number, row.ancestor_hash),
            old_head=BlockReference(row.old_head_number, row.old_head_hash),
            depth=row.depth,
            rewound_to=row.rewound_to,
            kept=outcomes.get((row.id, schema.KEPT), 0),
            moved=outcomes.get((row.id, schema.MOVED), 0),
            dropped=outcomes.get((row.id, schema.DROPPED), 0),
        )
        for row in rows
    )


def read_registry_state(connection: Connection, node_public_key: bytes) -> RegistryState | None:
    """Return the registry's entries about a node, or None where it was not followed yet."""
    followed = read_followed_history(connection)
    if followed is None or followed.last is None:
        return None
    return RegistryState.of(nodes_at(connection, None), node_public_key, followed.last)


def as_json(status: Status) -> dict[str, Any]:
    """Return a status as scripts read it."""
    return {
        "database": status.database,
        "chain_id": status.identity.chain_id,
        "node_public_key": hex0x(status.identity.node_public_key),
        "cursor": reference_as_json(status.cursor) if status.cursor else None,
        "final_block": status.final_block,
        "sequence_ids": {str(key): value for key, value in status.sequence_ids.items()},
        "envelopes": status.envelopes,
        "envelopes_soft": status.soft_envelopes,
        "envelopes_final": status.envelopes - status.soft_envelopes,
        "quarantined": status.quarantined,
        "reorg_count": status.reorg_count,
        "reorgs": [
            {
                "id": reorg.reorg_id,
                "depth": reorg.depth,
                "rewound_to": reorg.rewound_to,
                "ancestor": reference_as_json(reorg.ancestor),
                "old_head": reference_as_json(reorg.old_head),
                "kept": reorg.kept,
                "moved": reorg.moved,
                "dropped": reorg.dropped,
            }
            for reorg in status.reorgs
        ],
        "registry": registry_as_json(status.registry) if status.registry else None,
        "blocks_established": {str(each): count for each, count in status.established.items()},
    }


def registry_as_json(registry: RegistryState) -> dict[str, Any]:
    """Return the registry's entries as scripts read them."""
    return {
        "block": reference_as_json(registry.block),
        "node_id": registry.node_id,
        "status": registry.status,
        "enabled_nodes": list(registry.enabled_nodes),
    }


def as_text(status: Status) -> str:
    """Return a status as a person reads it."""
    final = status.envelopes - status.soft_envelopes
    sequences = [f"{last} of originator {key}" for key, last in status.sequence_ids.items()]
    lines = [
        f"database     {status.database}",
        f"chain        {status.identity.chain_id}",
        f"node         {hex0x(status.identity.node_public_key)}",
        f"cursor       {f'block {status.cursor}' if status.cursor else 'before the first block'}",
        f"final        {'nothing yet' if status.final_block is None else _up_to(status)}",
        *_listed("established", [_by(*each) for each in status.established.items()]),
        *_listed("sequence", sequences or ["none yet"]),
        f"envelopes    {status.envelopes}: {final} final, {status.soft_envelopes} soft",
        f"quarantined  {sum(status.quarantined.values())}",
        *(f"             {count} {reason}" for reason, count in status.quarantined.items()),
        f"reorgs       {status.reorg_count}",
    ]
    lines += [
        f"             {reorg.reorg_id}: {_cause(reorg)}{reorg.depth} blocks above "
        f"{reorg.ancestor}, {reorg.kept} kept, {reorg.moved} moved, {reorg.dropped} dropped"
        for reorg in status.reorgs
    ]
    if status.registry is not None:
        lines.append(registry_as_text(status.registry))
    return "\n".join(lines)


def registry_as_text(registry: RegistryState) -> str:
    """Return the registry's entries as a person reads them."""
    own = f"node {registry.node_id} is " if registry.node_id else "this key is "
    enabled = ", ".join(map(str, registry.enabled_nodes)) or "none"
    block = f"at block {registry.block.number}"
    return f"registry     {own}{registry.status}; enabled nodes: {enabled} ({block})"


def _cause(reorg: ReorgSummary) -> str:
    return "" if reorg.rewound_to is None else f"rewind to {reorg.rewound_to}, "


def _by(provenance: Provenance, blocks: int) -> str:
    if provenance is Provenance.RECEIPTS:
        return f"{blocks} blocks proved by their receipts"
    return f"{blocks} blocks by {provenance}, not proved"


def _up_to(status: Status) -> str:
    return f"up to block {status.final_block}"


def _listed(title: str, values: Sequence[str]) -> list[str]:
    return [f"{title if not n else '':<13}{value}" for n, value in enumerate(values)]
