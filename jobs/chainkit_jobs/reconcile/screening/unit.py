"""A unit of work: some row groups of the chain's logs, and the nodes' rows for these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports import PARQUET_ERRORS, one_line, tables
from chainkit_jobs.reconcile.expected import EXPECTED, PayloadContracts
from chainkit_jobs.reconcile.screening.chain_rows import (
    LOG_COLUMNS,
    BlockTimes,
    ChainRows,
    chain_rows,
)
from chainkit_jobs.reconcile.screening.counts import count_nodes, count_payloads
from chainkit_jobs.reconcile.screening.expected_bytes import Flags, Integers
from chainkit_jobs.reconcile.screening.node_rows import (
    BATCH_ROWS,
    LastOpened,
    NodeRows,
    RowGroup,
    Rows,
    Share,
    batch_rows,
    read_group,
)
from chainkit_jobs.reconcile.screening.results import (
    BINS,
    CHAIN,
    FORBIDDEN,
    QUARANTINED,
    RESULTS,
    SERVED,
    SUMMARY,
    NodeCount,
    UnitSummary,
)
from chainkit_jobs.reconcile.screening.rules import PostingRules
from chainkit_jobs.reconcile.screening.screen import Screened, ScreenedNode, pick, screen

_BLOCK_COLUMNS: Final = ("number", "hash", "timestamp")
_BLOCKS: Final = pa.schema([tables.BLOCKS.field(name) for name in _BLOCK_COLUMNS])


@dataclass(frozen=True, slots=True)
class LogGroup:
    """A row group of the chain's logs."""

    path: str
    group: int
    rows: int
    bytes: int
    """In memory, about."""
    file_digest: str
    """sha256 of the file, in hex."""


@dataclass(frozen=True, slots=True)
class BlockFile:
    """A file of the chain's blocks."""

    path: str
    file_digest: str


@dataclass(frozen=True, slots=True)
class ServingNode:
    """A node and the rows for which a unit is responsible, in the order of their claims."""

    node: ScreenedNode
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Everything that a task needs to know; small enough to be sent."""

    name: str
    """The name of the same work on every run: a digest of all that its result depends on."""
    logs: tuple[LogGroup, ...]
    blocks: tuple[BlockFile, ...]
    first_block: int
    last_block: int
    contracts: PayloadContracts
    rules: PostingRules
    nodes: tuple[ServingNode, ...]
    with_signatures: bool
    with_quarantined: bool
    """Whether payloads that must not be served are wanted, too: see job.Found."""
    recalled: tuple[int, ...] = ()
    """Sequences that were right, and have to be looked at all the same: then only these are."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A row group of a node that no unit was given."""

    name: str
    node_id: int
    group: RowGroup


def run_unit(unit: Unit) -> Iterator[pa.RecordBatch]:
    """Screen a unit, a batch at a time; the summary comes last (columns of RESULTS)."""
    span = max(1, unit.last_block - unit.first_block + 1)
    summary = UnitSummary(unit.name, bin_blocks=1 << max(0, (span // BINS).bit_length()))
    summary.nodes = {each.node.node_id: NodeCount() for each in unit.nodes}
    yield from _with_summary(_screened(unit, summary), summary)


def run_leftover(leftover: Leftover) -> Iterator[pa.RecordBatch]:
    """Return all rows of a group that no unit was given."""
    summary = UnitSummary(leftover.name)
    yield from _with_summary(_left(leftover, summary), summary)


def _with_summary(
    batches: Iterable[pa.RecordBatch], summary: UnitSummary
) -> Iterator[pa.RecordBatch]:
    yield from batches
    yield _batch([{"unit": summary.unit, "kind": SUMMARY, "summary": summary.text()}])


def _screened(unit: Unit, summary: UnitSummary) -> Iterator[pa.RecordBatch]:
    times = _block_times(unit)
    readers = {each.node.node_id: _Reader(each, summary) for each in unit.nodes}
    nodes = [each.node for each in unit.nodes]
    for chain in _chain_batches(unit, times):
        lowest, highest = int(chain.sequence_ids.min()), int(chain.sequence_ids.max())
        served = {node_id: reader.between(lowest, highest) for node_id, reader in readers.items()}
        forbidden = unit.rules.forbidden(chain)
        screened = screen(
            chain,
            served,
            nodes,
            # Recalled rows were found signed.
            with_signatures=unit.with_signatures and not unit.recalled,
            forbidden=forbidden,
        )
        summary.possibly_misplaced += screened.possibly_misplaced
        if unit.recalled:
            wanted = np.isin(chain.sequence_ids, np.array(unit.recalled, dtype=np.uint64))
            screened = pick(screened, chain, served, wanted)
            count_nodes(summary, chain, screened, screened.doubtful)
        else:
            if unit.with_quarantined:
                yield from _chain_payloads(unit.name, QUARANTINED, chain, ~chain.is_valid)
            yield from _chain_payloads(unit.name, FORBIDDEN, chain, forbidden)
            count_payloads(summary, chain)
            count_nodes(summary, chain, screened, ~screened.doubtful)
        yield from _doubtful(unit.name, chain, screened)
    if not unit.recalled:
        for node_id, reader in readers.items():
            # Rows that claim a sequence which is not here, and rows that are out of order.
            for rest in reader.rest():
                summary.possibly_misplaced += len(rest)
                yield from _served_rows(unit.name, node_id, rest)


def _left(leftover: Leftover, summary: UnitSummary) -> Iterator[pa.RecordBatch]:
    try:
        for rows in read_group(LastOpened(), leftover.group):
            summary.possibly_misplaced += len(rows)
            yield from _served_rows(leftover.name, leftover.node_id, rows)
    except PARQUET_ERRORS as error:
        summary.unreadable[leftover.node_id] = one_line(error)


class _Reader:
    """A node's rows; one whose file cannot be read serves nothing more, and is named."""

    def __init__(self, serving: ServingNode, summary: UnitSummary) -> None:
        self._rows = NodeRows(serving.shares)
        self._node_id = serving.node.node_id
        self._summary = summary

    def between(self, lowest: int, highest: int) -> Rows:
        if self._node_id not in self._summary.unreadable:
            try:
                return self._rows.between(lowest, highest)
            except PARQUET_ERRORS as error:
                self._summary.unreadable[self._node_id] = one_line(error)
        return NodeRows(()).between(lowest, highest)

    def rest(self) -> Iterator[Rows]:
        if self._node_id not in self._summary.unreadable:
            try:
                yield from self._rows.rest()
            except PARQUET_ERRORS as error:
                self._summary.unreadable[self._node_id] = one_line(error)


def _block_times(unit: Unit) -> BlockTimes:
    """Read only the blocks with a log of the unit: on a quiet chain these are few."""
    wanted = _block_numbers(unit)
    empty = pa.RecordBatch.from_pylist([], schema=_BLOCKS)
    found = [empty]
    for block_file in unit.blocks:
        with pq.ParquetFile(block_file.path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(_BLOCK_COLUMNS)):
                is_wanted = np.isin(batch.column("number").to_numpy(), wanted)
                found.append(batch.filter(pa.array(is_wanted)).select(list(_BLOCK_COLUMNS)))
    table = pa.Table.from_batches([batch.cast(_BLOCKS) for batch in found])
    batch = table.sort_by("number").combine_chunks().to_batches(max_chunksize=None)
    blocks = batch[0] if batch else empty
    return BlockTimes(
        blocks.column("number").to_numpy(),
        blocks.column("hash"),
        blocks.column("timestamp").to_numpy(),
    )


def _block_numbers(unit: Unit) -> Integers:
    parts: list[Integers] = [np.zeros(0, np.int64)]
    with closing(LastOpened()) as files:
        for group in unit.logs:
            file = files.open(group.path)
            column = file.read_row_group(group.group, columns=["block_number"]).column(0)
            parts.append(np.unique(column.to_numpy()))
    return np.unique(np.concatenate(parts))


def _chain_batches(unit: Unit, times: BlockTimes) -> Iterator[ChainRows]:
    with closing(LastOpened()) as files:
        for group in unit.logs:
            size = batch_rows(group.rows, group.bytes)
            for batch in files.open(group.path).iter_batches(
                size, row_groups=[group.group], columns=list(LOG_COLUMNS), use_threads=False
            ):
                rows = chain_rows(batch, times, unit.contracts)
                if len(rows):
                    yield rows


def _doubtful(name: str, chain: ChainRows, screened: Screened) -> Iterator[pa.RecordBatch]:
    yield from _chain_payloads(name, CHAIN, chain, screened.doubtful)
    for node_id, served in screened.rows.items():
        yield from _served_rows(name, node_id, served)


def _chain_payloads(
    name: str, kind: str, chain: ChainRows, mask: Flags
) -> Iterator[pa.RecordBatch]:
    rows = chain.decoded(mask)
    if rows:
        nothing = dict.fromkeys(EXPECTED.names)
        yield _batch([{"unit": name, "kind": kind, **nothing, **row} for row in rows])


def _served_rows(name: str, node_id: int, rows: Rows) -> Iterator[pa.RecordBatch]:
    if not len(rows):
        return
    columns: Mapping[str, Any] = {
        "unit": pa.array([name] * len(rows)),
        "kind": pa.array([SERVED] * len(rows)),
        "node_id": pa.array([node_id] * len(rows), pa.int64()),
        "row_index": pa.array(rows.row_indexes),
        "claimed_sequence_id": pa.array(
            [Decimal(claim) for claim in rows.claims.tolist()], pa.decimal128(20, 0)
        ),
        "envelope": rows.envelopes,
    }
    arrays = [
        columns[each.name] if each.name in columns else pa.nulls(len(rows), each.type)
        for each in RESULTS
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=RESULTS)


def _batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=RESULTS)
