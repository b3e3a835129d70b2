"""Puts planned faults into exports while they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.audit.exports.batch import Batch
from benchmarks.audit.exports.generate import CHAIN, Tables, node_folder
from benchmarks.audit.exports.shape import Shape
from benchmarks.audit.faults.chain import CHAIN_KINDS
from benchmarks.audit.faults.kind import Served
from benchmarks.audit.faults.kinds import KINDS
from benchmarks.audit.faults.plan import Fault, Plan, window_of
from benchmarks.audit.faults.wire import Payload
from chainkit.types import BLOCKCHAIN_ORIGINATOR_ID, TopicKind

_LOGS: Final = (CHAIN, "logs")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows in place of others."""

    first: int
    """Position of the first row that goes."""
    last: int
    """Position behind the last one."""
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Injection:
    """An edit for ``generate``: whoever makes a batch also puts its faults in."""

    plan: Plan

    def __call__(self, shape: Shape, batch: Batch, made: Tables) -> Tables:
        """Return the tables with all faults of the batch."""
        held = shape.sequences_of(batch.blocks)
        faults = sorted(
            (fault for fault in self.plan.faults if fault.first in held),
            key=lambda fault: fault.first,
        )
        changed = dict(made)
        for node_id in shape.node_ids:
            of_node = [fault for fault in faults if fault.node_id == node_id]
            place = node_folder(node_id), "envelopes"
            pieces = [_served(shape, batch, fault) for fault in of_node]
            changed[place] = _patched(made[place], pieces)
        of_chain = [fault for fault in faults if fault.node_id is None]
        pieces = [_emitted(batch, fault, made[_LOGS]) for fault in of_chain]
        changed[_LOGS] = _patched(made[_LOGS], pieces)
        return changed


def _patched(table: pa.Table, pieces: Sequence[_Piece]) -> pa.Table:
    found, end = [], 0
    for piece in pieces:
        found.append(table.slice(end, piece.first - end))
        found.append(pa.Table.from_pylist(piece.rows, schema=table.schema))
        end = piece.last
    return pa.concat_tables([*found, table.slice(end)]).combine_chunks()


def _served(shape: Shape, batch: Batch, fault: Fault) -> _Piece:
    assert fault.node_id is not None
    kind = KINDS[fault.kind]
    first = fault.first - int(batch.sequence_ids[0])
    rows = range(first, first + kind.width)
    window = window_of(shape, fault.node_id, (payload_of(batch, row) for row in rows))
    # A malformed payload has no row, so those behind it stand further to the front.
    before = int(np.count_nonzero(~batch.are_malformed[:first]))
    honest = int(np.count_nonzero(~batch.are_malformed[rows.start : rows.stop]))
    served = [_row(batch, first + each.payload, each) for each in kind.serve(window)]
    return _Piece(before, before + honest, served)


def _emitted(batch: Batch, fault: Fault, logs: pa.Table) -> _Piece:
    kind = CHAIN_KINDS[fault.kind]
    first = fault.first - int(batch.sequence_ids[0])
    rows = logs.slice(first, kind.width).to_pylist()
    return _Piece(first, first + kind.width, kind.write(rows))


def payload_of(batch: Batch, row: int) -> Payload:
    """Return what the chain holds in a row of a batch."""
    return Payload(
        sequence_id=int(batch.sequence_ids[row]),
        originator_ns=int(batch.originator_ns[row]),
        client_envelope=batch.content.payloads[row].tobytes(),
        transaction_hash=batch.transaction_hashes[row].tobytes(),
    )


def _row(batch: Batch, row: int, served: Served) -> dict[str, Any]:
    is_update = bool(batch.content.are_updates[row])
    kind = TopicKind.IDENTITY_UPDATE if is_update else TopicKind.GROUP_MESSAGE
    return {
        "originator_id": BLOCKCHAIN_ORIGINATOR_ID,
        "sequence_id": Decimal(served.claimed_sequence_id),
        "block_number": int(batch.block_numbers[row]),
        "block_hash": batch.block_hashes[row].tobytes(),
        "transaction_hash": batch.transaction_hashes[row].tobytes(),
        "transaction_index": int(batch.positions[row]),
        "log_index": int(batch.positions[row]),
        "originator_ns": int(batch.originator_ns[row]),
        "topic": kind.topic(batch.content.identifiers[row].tobytes()),
        "envelope": served.envelope,
    }
