"""The footers of an export's files: the places of its rows, and the values that they may hold.

A stranger's footer is not trusted: it guides rows to a unit, which checks the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from chainkit.errors import StoreError
from chainkit.exports import PARQUET_ERRORS, tables
from chainkit_jobs.reconcile.screening.node_rows import HIGHEST_SEQUENCE, RowGroup, claims
from chainkit_jobs.reconcile.screening.unit import BlockFile, LogGroup
from chainkit_jobs.sources import RAW_ENVELOPES, Export, table_paths

NOWHERE: Final = (1, 0)
"""A range that holds nothing."""

_ANYWHERE: Final = (0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class PlacedLogs:
    """A row group of the chain's logs, and its blocks."""

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
    """Return the row groups of a node's envelopes, ordered by their claims."""
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
                    first=lowest,
                    last=highest,
                    is_guided=0 <= lowest <= highest <= HIGHEST_SEQUENCE,
                    file_digest=digest,
                )
            )
            first_row += group.num_rows
    return in_order([group for group in found if group.rows], _narrowed)


def in_order(groups: list[RowGroup], narrow: Callable[[RowGroup], RowGroup]) -> list[RowGroup]:
    """Order groups by where nearly all of their rows are; groups that overlap do not guide.

    One odd claim in a group must not lead it, and all groups behind it, astray: where claims spread
    far, or are among those of another group, ``narrow`` finds the range of nearly all.
    """
    ordered = sorted((narrow(each) if _is_wide(each) else each for each in groups), key=_place)
    overlapping = {
        each.first_row
        for one, other in pairwise(group for group in ordered if group.is_guided)
        if other.first <= one.last
        for each in (one, other)
    }
    ordered = [narrow(each) if each.first_row in overlapping else each for each in ordered]
    found: list[RowGroup] = []
    last = -1
    for group in sorted(ordered, key=_place):
        is_guided = group.is_guided and group.first > last
        last = group.last if is_guided else last
        found.append(replace(group, is_guided=is_guided))
    return found


def _place(group: RowGroup) -> tuple[int, int, int]:
    return group.first, group.last, group.first_row


def _is_wide(group: RowGroup) -> bool:
    return group.is_guided and group.last - group.first > 2 * group.rows


def _narrowed(group: RowGroup) -> RowGroup:
    """Leave one row in a hundred out at either end."""
    try:
        with pq.ParquetFile(group.path) as file:
            table = file.read_row_group(group.group, columns=["sequence_id"])
    except PARQUET_ERRORS:
        # The reader of the group's rows will report the fault.
        return replace(group, is_guided=False)
    found = np.sort(claims(table.column(0).combine_chunks()))
    few = min(max(1, len(found) // 100), (len(found) - 1) // 2)
    return replace(group, first=int(found[few]), last=int(found[-1 - few]))


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
    except PARQUET_ERRORS as error:
        raise StoreError(f"export file {path}", "Parquet", error) from error


def _digest(export: Export, path: Path) -> str:
    name = path.relative_to(export.directory.resolve()).as_posix()
    return str(export.manifest.files[name]["sha256"])
