"""What the footers of an export's files say: where its rows lie, and what they may hold.

A stranger's footer is believed in nothing: it guides rows to a unit, which checks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit import tables
from chainkit.errors import StoreError
from chainkit_jobs.screening.node_rows import RowGroup
from chainkit_jobs.screening.unit import BlockFile, LogGroup
from chainkit_jobs.sources import RAW_ENVELOPES, Export, table_paths

HIGHEST_SEQUENCE: Final = 2**64 - 1
NOWHERE: Final = (1, 0)
"""A range that holds nothing."""

_ANYWHERE: Final = (0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class PlacedLogs:
    """A row group of the chain's logs, and the blocks that it speaks of."""

    group: LogGroup
    first: int
    last: int


def log_groups(chain: Export) -> Iterator[PlacedLogs]:
    """Return the row groups of a chain export's logs, in the order of the blocks."""
    for path in table_paths(chain, "logs", tables.LOGS):
        metadata, digest = _footer(path), _digest(chain, path)
        column = metadata.schema.names.index("block_number")
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not group.num_rows:
                continue
            first, last = _bounds(group.column(column).statistics, _ANYWHERE)
            log_group = LogGroup(str(path), number, group.num_rows, group.total_byte_size, digest)
            yield PlacedLogs(log_group, first, last)


def block_files(chain: Export) -> list[tuple[BlockFile, int, int]]:
    """Return the files of a chain export's blocks, each with its first and last block."""
    found = []
    for path in table_paths(chain, "blocks", tables.BLOCKS):
        metadata = _footer(path)
        column = metadata.schema.names.index("number")
        ends = [
            _bounds(metadata.row_group(number).column(column).statistics, _ANYWHERE)
            for number in range(metadata.num_row_groups)
            if metadata.row_group(number).num_rows
        ]
        if ends:
            file = BlockFile(str(path), _digest(chain, path))
            found.append((file, min(a for a, _ in ends), max(b for _, b in ends)))
    return found


def row_groups(export: Export) -> list[RowGroup]:
    """Return the row groups of a node's envelopes, ordered by what they claim."""
    found, first_row = [], 0
    for path in table_paths(export, "envelopes", RAW_ENVELOPES):
        metadata, digest = _footer(path), _digest(export, path)
        names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        claim, envelope = names.index("sequence_id"), names.index("envelope")
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            lowest, highest = _bounds(group.column(claim).statistics, NOWHERE)
            size = (
                group.column(claim).total_uncompressed_size
                + group.column(envelope).total_uncompressed_size
            )
            found.append(
                RowGroup(
                    path=str(path),
                    group=number,
                    first_row=first_row,
                    rows=group.num_rows,
                    bytes=size,
                    lowest=lowest,
                    highest=highest,
                    is_guided=0 <= lowest <= highest <= HIGHEST_SEQUENCE,
                    file_digest=digest,
                )
            )
            first_row += group.num_rows
    return in_order([group for group in found if group.rows])


def in_order(groups: list[RowGroup]) -> list[RowGroup]:
    """Order groups by what they claim; one that overlaps the one before is not guided by it."""
    found: list[RowGroup] = []
    highest = -1
    for group in sorted(groups, key=lambda each: (each.lowest, each.highest, each.first_row)):
        is_guided = group.is_guided and group.lowest > highest
        highest = group.highest if is_guided else highest
        found.append(replace(group, is_guided=is_guided))
    return found


def _bounds(statistics: Any, unknown: tuple[int, int]) -> tuple[int, int]:
    if statistics is None or not statistics.has_min_max or statistics.null_count:
        return unknown
    lowest, highest = statistics.min, statistics.max
    if not isinstance(lowest, int | Decimal) or not isinstance(highest, int | Decimal):
        return unknown
    return int(lowest), int(highest)


def _footer(path: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"export file {path}", "Parquet", error) from error


def _digest(export: Export, path: Path) -> str:
    name = path.relative_to(export.directory.resolve()).as_posix()
    return str(export.manifest.files[name]["sha256"])
