"""The four files of a range of blocks, written side by side as its blocks come in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.exports import ExportFolder, flush, parquet_writer, writing_to
from chainkit.tables import CHAIN_TABLES
from chainkit_jobs.chain_export.chunk import Chunk

_GROUP_ROWS: Final = 10_000
_GROUP_BYTES: Final = 16 * 2**20
"""A row group ends with the chunk that fills it: chunks are the same for all, so are the files."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Blocks whose rows lie in files of their own."""

    first: int
    last: int
    is_finished: bool
    """Whether its blocks reach the next multiple of the range's size."""

    def file_name(self, table: str) -> str:
        """Return the name of a table's file, without the suffix."""
        return f"{table}/{self.first:010}-{self.last:010}"


def ranges_of(first: int, last: int, size: int) -> Iterator[BlockRange]:
    """Cut blocks, both ends included, at the multiples of a size, so that all cut them alike."""
    while first <= last:
        end = (first // size + 1) * size - 1
        yield BlockRange(first, min(end, last), is_finished=end <= last)
        first = end + 1


class RangeFiles:
    """Writes the files of one range; enter it, append its chunks, and finish."""

    def __init__(self, folder: ExportFolder, directory: Path, blocks: BlockRange) -> None:
        """Take the folder, which was entered, and its name for error messages."""
        self._folder = folder
        self._directory = directory
        self._blocks = blocks
        self._waiting: dict[str, list[pa.Table]] = {name: [] for name in CHAIN_TABLES}
        self._rows = dict.fromkeys(CHAIN_TABLES, 0)
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> Self:
        """Open the files. Raises StoreError where that is impossible."""
        with writing_to(self._directory):
            for name, schema in CHAIN_TABLES.items():
                self._writers[name] = parquet_writer(self._path(name), schema)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what was not finished; the folder deletes it."""
        for writer in self._writers.values():
            # Closing writes what is left: on a full disk that fails once more.
            with suppress(OSError, pa.ArrowException):
                writer.close()

    def append(self, chunk: Chunk) -> None:
        """Add the next blocks. Raises StoreError where the disk takes no more."""
        for name, table in chunk.tables.items():
            waiting = self._waiting[name]
            waiting.append(table)
            self._rows[name] += table.num_rows
            is_full = sum(each.num_rows for each in waiting) >= _GROUP_ROWS
            if is_full or sum(each.nbytes for each in waiting) >= _GROUP_BYTES:
                self._write_group(name)

    def finish(self) -> dict[str, Mapping[str, Any]]:
        """Close the files; return what a manifest says of them, by name. Raises StoreError."""
        place = {
            "from_block": self._blocks.first,
            "to_block": self._blocks.last,
            "finished": self._blocks.is_finished,
        }
        files: dict[str, Mapping[str, Any]] = {}
        for table, writer in self._writers.items():
            self._write_group(table)
            with writing_to(self._directory):
                writer.close()
                flush(self._path(table))
            name, about = self._folder.add(
                self._blocks.file_name(table),
                self._path(table),
                self._rows[table],
                self._blocks.is_finished,
            )
            files[name] = about | place
        return files

    def _write_group(self, name: str) -> None:
        tables = pa.concat_tables(self._waiting[name] or [CHAIN_TABLES[name].empty_table()])
        self._waiting[name].clear()
        if tables.num_rows:
            with writing_to(self._directory):
                self._writers[name].write_table(tables, row_group_size=tables.num_rows)

    def _path(self, table: str) -> Path:
        return self._folder.staging / f"{table}.{self._blocks.first}.parquet"
