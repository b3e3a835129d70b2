"""A node's side of a batch: its rows under the sequences that its table claims for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from chainkit_jobs.screening.expected_bytes import Flags, Integers
from chainkit_jobs.sources import RAW_ENVELOPES

BATCH_BYTES: Final = 32 * 2**20
"""What is held of a table at a time, about: an envelope may be as large as a block allows."""
BATCH_ROWS: Final = 20_000

Sequences = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a Parquet file that lie together, and the sequences that they claim."""

    path: str
    group: int
    first_row: int
    """Position of the first row among all of the node's, in the order of its files' names."""
    rows: int
    bytes: int
    """In memory, about."""
    lowest: int
    highest: int
    """What its rows claim, by the file's statistics."""
    is_guided: bool
    """Whether there are such statistics, and they follow those of the group before."""
    file_digest: str
    """sha256 of the file, in hex."""

    @property
    def batch_rows(self) -> int:
        """Rows that are read at a time."""
        return batch_rows(self.rows, self.bytes)


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a node, each with its envelope."""

    claims: Sequences
    row_indexes: Integers
    envelopes: pa.BinaryArray

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.claims)

    def where(self, mask: Flags) -> Rows:
        """Return the rows that a mask picks."""
        if mask.all():
            return self
        picked = self.envelopes.filter(pa.array(mask))
        return Rows(self.claims[mask], self.row_indexes[mask], picked)


class NodeRows:
    """Reads row groups one after the other, and gives each row out once."""

    def __init__(self, groups: Sequence[RowGroup]) -> None:
        """Take row groups that follow each other by what they claim."""
        self._groups = deque(groups)
        self._coming: Iterator[Rows] = iter(())
        self._waiting: list[Rows] = []

    def between(self, lowest: int, highest: int) -> Rows:
        """Return the rows not yet given out whose claims lie between two sequences, inclusive.

        To be asked in ascending order: it stops to read behind the first rows that lie beyond.
        """
        while not self._is_beyond(highest):
            rows = self._next_rows(lowest, highest)
            if rows is None:
                break
            if len(rows):
                self._waiting.append(rows)
        taken, left = [], []
        for rows in self._waiting:
            # Arrow's and NumPy's integers beyond 63 bits compare exactly only as uint64.
            is_in = (rows.claims >= np.uint64(lowest)) & (rows.claims <= np.uint64(highest))
            taken.append(rows.where(is_in))
            if not is_in.all():
                left.append(rows.where(~is_in))
        self._waiting = left
        return concatenated(taken)

    def _next_rows(self, lowest: int, highest: int) -> Rows | None:
        rows = next(self._coming, None)
        while rows is None and self._groups and self._groups[0].lowest <= highest:
            group = self._groups.popleft()
            # A group that begins below may still hold rows that nobody has asked for.
            if group.highest >= lowest:
                self._coming = read_group(group)
                rows = next(self._coming, None)
        return rows

    def _is_beyond(self, highest: int) -> bool:
        return bool(self._waiting) and int(self._waiting[-1].claims.min()) > highest


def read_group(group: RowGroup) -> Iterator[Rows]:
    """Read a row group, some rows at a time; a claim that is no uint64 is taken for 0.

    Raises ArrowInvalid where a row claims what the group's own statistics deny: they guide rows to
    units, and whoever wrote them could hide rows.
    """
    first = group.first_row
    with pq.ParquetFile(group.path) as file:
        for batch in file.iter_batches(
            group.batch_rows, row_groups=[group.group], columns=RAW_ENVELOPES.names
        ):
            indexes = np.arange(first, first + len(batch), dtype=np.int64)
            rows = Rows(claims(batch.column("sequence_id")), indexes, batch.column("envelope"))
            _check_guidance(group, rows)
            yield rows
            first += len(batch)


def _check_guidance(group: RowGroup, rows: Rows) -> None:
    if rows.envelopes.null_count:
        raise pa.ArrowInvalid(f"{rows.envelopes.null_count} rows have no envelope")
    if not group.is_guided or not len(rows):
        return
    lowest, highest = int(rows.claims.min()), int(rows.claims.max())
    if lowest < group.lowest or highest > group.highest:
        raise pa.ArrowInvalid(
            f"sequences {lowest} to {highest} in a row group whose statistics say {group.lowest} "
            f"to {group.highest}"
        )


def claims(values: pa.Decimal128Array) -> Sequences:
    """Return claimed sequences; 0 for null and for what is no uint64."""
    words = np.frombuffer(values.buffers()[1], dtype=np.uint64).reshape(-1, 2)
    low, high = words[values.offset : values.offset + len(values)].T
    is_uint64 = high == 0
    if values.null_count:
        is_uint64 &= values.is_valid().to_numpy(zero_copy_only=False)
    return np.where(is_uint64, low, np.uint64(0))


def concatenated(parts: Sequence[Rows]) -> Rows:
    """Put rows after each other."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Rows(np.zeros(0, np.uint64), np.zeros(0, np.int64), pa.array([], pa.binary()))
    return Rows(
        np.concatenate([part.claims for part in parts]),
        np.concatenate([part.row_indexes for part in parts]),
        pa.concat_arrays([part.envelopes for part in parts]),
    )


def batch_rows(rows: int, size: int) -> int:
    """Return how many rows to hold at a time where ``rows`` take ``size`` bytes."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))
