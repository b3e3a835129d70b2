"""The four files of a range of blocks, written side by side while the blocks arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from chainkit.exports import ExportFolder, TableWriter, flush, writing_to
from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.chain_export.chunk import Chunk


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Blocks whose rows are in files of their own."""

    first: int
    last: int
    is_finished: bool
    """Whether its blocks reach the next multiple of the range's size."""

    def file_name(self, table: str) -> str:
        """Return the name of a table's file, without the suffix."""
        return f"{table}/{self.first:010}-{self.last:010}"


def ranges_of(first: int, last: int, size: int) -> Iterator[BlockRange]:
    """Cut blocks, both ends included, at multiples of a size, so that all use the same ranges."""
    while first <= last:
        end = (first // size + 1) * size - 1
        yield BlockRange(first, min(end, last), is_finished=end <= last)
        first = end + 1


class RangeFiles:
    """A context manager that writes the files of one range: append the chunks, and finish."""

    def __init__(self, folder: ExportFolder, directory: Path, blocks: BlockRange) -> None:
        """Take the folder, which was entered, and its name in error messages."""
        self._folder = folder
        self._directory = directory
        self._blocks = blocks
        self._writers: dict[str, TableWriter] = {}

    def __enter__(self) -> Self:
        """Open the files. Raises StoreError where that is impossible."""
        with writing_to(self._directory):
            for name, schema in CHAIN_TABLES.items():
                self._writers[name] = TableWriter(self._path(name), schema)
        return self

    def __exit__(self, *_: object) -> None:
        """Close unfinished files, which the folder deletes."""
        for writer in self._writers.values():
            writer.abandon()

    def append(self, chunk: Chunk) -> None:
        """Add the next blocks. Raises StoreError where the disk takes no more."""
        for name, table in chunk.tables.items():
            with writing_to(self._directory):
                self._writers[name].append(table)

    def finish(self) -> dict[str, Mapping[str, Any]]:
        """Close the files; return their entries for a manifest, by name. Raises StoreError."""
        place = {
            "from_block": self._blocks.first,
            "to_block": self._blocks.last,
            "finished": self._blocks.is_finished,
        }
        files: dict[str, Mapping[str, Any]] = {}
        for table, writer in self._writers.items():
            with writing_to(self._directory):
                writer.close()
                flush(self._path(table))
            name, about = self._folder.add(
                self._blocks.file_name(table),
                self._path(table),
                writer.rows,
                self._blocks.is_finished,
            )
            files[name] = about | place
        return files

    def _path(self, table: str) -> Path:
        return self._folder.staging / f"{table}.{self._blocks.first}.parquet"
