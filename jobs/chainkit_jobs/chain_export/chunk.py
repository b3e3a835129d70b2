"""A chunk of blocks as Arrow tables: what a thread hands on is no larger than what is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow as pa

from chainkit.errors import InconsistentAnswer
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference, Log
from chainkit_jobs.chain_export.fetch import BlockReader, BlockRows
from chainkit_jobs.chain_export.json_rows import Row
from chainkit_jobs.chain_export.sequence_check import PayloadLogs

CHUNK_BLOCKS: Final = 100
"""Blocks that are asked for, checked and handed on together."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some blocks in a row, linked to each other."""

    parent_hash: bytes
    """32 bytes: of the parent of the first."""
    end: BlockReference
    """The last."""
    tables: Mapping[str, pa.Table]
    payload_logs: Sequence[Log]

    @property
    def blocks(self) -> int:
        """How many."""
        return int(self.tables["blocks"].num_rows)


class ChunkReader:
    """Reads chunks from an endpoint, from any number of threads."""

    def __init__(self, reader: BlockReader, payload_logs: PayloadLogs, name: str) -> None:
        """Take what reads blocks, and the endpoint's name for error messages."""
        self._reader = reader
        self._payload_logs = payload_logs
        self._name = name

    def read(self, numbers: Sequence[int]) -> Chunk:
        """Return the blocks of some heights in a row. Raises ChainError as BlockReader does.

        Raises InconsistentAnswer also where the blocks do not link.
        """
        blocks = list(self._reader.blocks(numbers))
        for parent, child in pairwise(each.block for each in blocks):
            check_link(self._name, reference_of(parent), child["parent_hash"])
        return Chunk(
            parent_hash=blocks[0].block["parent_hash"],
            end=reference_of(blocks[-1].block),
            tables={name: _table(name, rows) for name, rows in _rows_of(blocks).items()},
            payload_logs=self._payload_logs.of(row for each in blocks for row in each.logs),
        )


def reference_of(block: Mapping[str, Any]) -> BlockReference:
    """Return the block of a row of blocks as a reference."""
    return BlockReference(block["number"], block["hash"])


def check_link(name: str, parent: BlockReference, parent_hash: bytes) -> None:
    """Raise InconsistentAnswer where a block's parent is not the block below it."""
    if parent_hash != parent.hash:
        raise changed(name, parent, parent_hash)


def changed(name: str, expected: BlockReference, got: bytes | None) -> InconsistentAnswer:
    """Build the error for another block, or none, where one was read before."""
    shown = "no such block" if got is None else hex0x(got)
    return InconsistentAnswer(
        f"the chain at {name}",
        f"block {hex0x(expected.hash)} throughout the export",
        f"{shown}: the chain was reorganised meanwhile, export it again",
        f"block {expected.number}",
    )


def _rows_of(blocks: Sequence[BlockRows]) -> dict[str, Iterable[Row]]:
    return {
        "blocks": (each.block for each in blocks),
        "transactions": chain.from_iterable(each.transactions for each in blocks),
        "receipts": chain.from_iterable(each.receipts for each in blocks),
        "logs": chain.from_iterable(each.logs for each in blocks),
    }


def _table(name: str, rows: Iterable[Row]) -> pa.Table:
    schema = CHAIN_TABLES[name]
    listed = list(rows)
    columns = [pa.array([row[field.name] for row in listed], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
