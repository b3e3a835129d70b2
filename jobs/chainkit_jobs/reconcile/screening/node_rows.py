"""A node's side of a batch: its rows, under the sequences that its table claims for the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from chainkit_jobs.reconcile.screening.expected_bytes import Flags, Integers
from chainkit_jobs.sources import RAW_ENVELOPES

BATCH_BYTES: Final = 32 * 2**20
"""Bytes of a table held at a time, about: an envelope may be as large as a block allows."""
BATCH_ROWS: Final = 20_000

HIGHEST_SEQUENCE: Final = 2**64 - 1

Sequences = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a Parquet file that are stored together, and the sequences that they claim."""

    path: str
    group: int
    first_row: int
    """Position of the first row among all rows of the node, in the order of its files' names."""
    rows: int
    bytes: int
    """In memory, about."""
    lowest: int
    highest: int
    """The sequences that the group's rows claim, by the file's statistics."""
    first: int
    last: int
    """The range of nearly all of these: odd claims must not lead the others astray."""
    is_guided: bool
    """Whether that is known, and follows the group before."""
    file_digest: str
    """sha256 of the file, in hex."""

    @property
    def batch_rows(self) -> int:
        """Rows that are read at a time."""
        return batch_rows(self.rows, self.bytes)


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of a group for one unit: those that claim a sequence in the unit's range."""

    group: RowGroup
    ranges: tuple[tuple[int, int], ...]
    """First and last sequence of each."""


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
        count, first = int(mask.sum()), int(mask.argmax())
        if mask[first : first + count].all():
            # The rows are stored together: nothing is copied.
            run = slice(first, first + count)
            envelopes = self.envelopes.slice(first, count)
            return Rows(self.claims[run], self.row_indexes[run], envelopes)
        picked = self.envelopes.filter(pa.array(mask))
        return Rows(self.claims[mask], self.row_indexes[mask], picked)


class LastOpened:
    """Opens Parquet files; the last stays open, because the groups of a file follow each other."""

    def __init__(self) -> None:
        """Open none yet."""
        self._path: str | None = None
        self._file: pq.ParquetFile | None = None

    def open(self, path: str) -> pq.ParquetFile:
        """Return a file that is open until another one is asked for."""
        if path != self._path or self._file is None:
            self.close()
            self._file, self._path = pq.ParquetFile(path), path
        return self._file

    def close(self) -> None:
        """Close the last one."""
        if self._file is not None:
            self._file.close()
        self._file = None


class NodeRows:
    """Reads shares one after the other, and gives each row out once."""

    def __init__(self, shares: Sequence[Share]) -> None:
        """Take shares of groups, consecutive by the ranges of nearly all of their rows."""
        self._shares = deque(shares)
        self._group: RowGroup | None = None
        self._coming: Iterator[Rows] = iter(())
        self._waiting: list[Rows] = []
        self._files = LastOpened()
        self._reached = 0
        """A sequence up to which rows have been read, but for some out of order."""

    def between(self, lowest: int, highest: int) -> Rows:
        """Return the next rows whose claims are between two sequences, inclusive.

        Call it in ascending order: it stops reading behind the first rows beyond the range.
        """
        while self._reached <= highest:
            rows = self._next_rows(highest)
            if rows is None:
                break
            if len(rows):
                self._waiting.append(rows)
        taken, left = [], []
        for rows in self._waiting:
            is_in = _is_within(rows.claims, lowest, highest)
            taken.append(rows.where(is_in))
            if not is_in.all():
                left.append(rows.where(~is_in))
        self._waiting = left
        return concatenated(taken)

    def rest(self) -> Iterator[Rows]:
        """Return all rows not yet given out, some at a time."""
        yield from self._waiting
        self._waiting = []
        while (rows := self._next_rows(HIGHEST_SEQUENCE)) is not None:
            yield rows
        self._files.close()

    def _next_rows(self, highest: int) -> Rows | None:
        rows = next(self._coming, None)
        while rows is None and self._shares and self._shares[0].group.first <= highest:
            share = self._shares.popleft()
            self._group, self._coming = share.group, _read_share(self._files, share)
            rows = next(self._coming, None)
        if rows is not None and self._group is not None:
            usual = rows.claims[_is_within(rows.claims, self._group.first, self._group.last)]
            self._reached = int(usual.min()) if len(usual) else self._reached
        return rows


def _read_share(files: LastOpened, share: Share) -> Iterator[Rows]:
    for rows in read_group(files, share.group):
        is_own = np.zeros(len(rows), dtype=np.bool_)
        for lowest, highest in share.ranges:
            is_own |= _is_within(rows.claims, lowest, highest)
        yield rows.where(is_own)


def _is_within(claims: Sequences, lowest: int, highest: int) -> Flags:
    # Arrow's and NumPy's integers beyond 63 bits compare exactly only as uint64.
    found: Flags = (claims >= np.uint64(lowest)) & (claims <= np.uint64(highest))
    return found


def read_group(files: LastOpened, group: RowGroup) -> Iterator[Rows]:
    """Read a row group, some rows at a time; a claim that is no uint64 is taken for 0.

    Raises ArrowInvalid where a row's claim contradicts the group's own statistics: these guide rows
    to units, and the writer of the file could hide rows.
    """
    first = group.first_row
    batches = files.open(group.path).iter_batches(
        group.batch_rows,
        row_groups=[group.group],
        columns=RAW_ENVELOPES.names,
        # Reading by another thread takes half as much again of the kernel's time.
        use_threads=False,
    )
    for batch in batches:
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
