"""From sorted Arrow batches to blocks, one at a time; one may begin in this and end in the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.proof.block import BlockRows
from chainkit_jobs.proof.collector import Row

DEMAND: Final = 0
"""Kind of the rows that list a required block: with its hash, or without."""


def blocks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[BlockRows]:
    """Group rows of job.united by block; no more than one block and one batch is held.

    The batches must be sorted by block: RuntimeError if a block comes back after another one.
    """
    number: int | None = None
    held: list[list[Any]] = []
    for each, kind, row in _rows(batches):
        if held and each != number:
            if number is not None and (each is None or each < number):
                raise RuntimeError(f"block {each} after block {number}: the rows are not sorted")
            yield _block(number, held)
            held = []
        if not held:
            number, held = each, [[] for _ in range(len(CHAIN_TABLES) + 1)]
        held[kind].append(row)
    if held:
        yield _block(number, held)


def _block(number: int | None, held: list[list[Any]]) -> BlockRows:
    demands, *rows = held
    hashes = tuple(sorted({value for value in demands if value is not None}))
    return BlockRows(number, hashes, *rows)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, int, Any]]:
    for batch in batches:
        kinds = batch.column("kind").to_pylist()
        demanded = pc.filter(batch.column("demanded"), pc.equal(batch.column("kind"), DEMAND))
        values: list[Iterator[Any]] = [iter(demanded.to_pylist())]
        values += [_table_rows(batch.column(name), CHAIN_TABLES[name]) for name in CHAIN_TABLES]
        for number, kind in zip(batch.column("block_number").to_pylist(), kinds, strict=True):
            yield number, kind, next(values[kind])


def _table_rows(column: pa.StructArray, schema: pa.Schema) -> Iterator[Row]:
    """Return the rows of one table; in a batch, rows of other tables are null."""
    # By column: each row as a whole would take twice as long.
    columns = [_values(each) for each in pc.drop_null(column).flatten()]
    names = schema.names
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_decimal(column.type):
        return [None if value is None else int(value) for value in values]
    return values
