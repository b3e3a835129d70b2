"""The files of an export: written beside their names, and proved by their digests."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.errors import StoreError
from chainkit.exports.manifest import (
    MANIFEST_NAME,
    Manifest,
    load_manifest,
    manifest_text,
)


class ExportWriter:
    """Writes the tables of an export; ``finish`` makes it visible under its name."""

    def __init__(self, directory: Path, schemas: Mapping[str, pa.Schema]) -> None:
        """Open one Parquet file per table. Raises StoreError if ``directory`` exists."""
        if os.path.lexists(directory):
            raise StoreError(f"export {directory}", "a folder that does not exist yet", "one")
        self._directory = directory
        # Two that write to one name at once must not write into one folder.
        self._partial = directory.with_name(f".{directory.name}.{os.getpid()}.partial")
        self._schemas = schemas
        self._rows = dict.fromkeys(schemas, 0)
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> Self:
        """Make the folder in which the export grows. Raises StoreError where that is impossible."""
        try:
            with writing_to(self._directory):
                shutil.rmtree(self._partial, ignore_errors=True)
                self._partial.mkdir(parents=True)
                for name, schema in self._schemas.items():
                    self._writers[name] = pq.ParquetWriter(self._path(name), schema)
        except StoreError:
            self._discard()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing behind of an export that was not finished."""
        self._discard()

    def write(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to a table; keys are the columns of its schema.

        Raises StoreError for a row that the schema does not hold, or a disk that takes no more.
        """
        if rows:
            schema = self._schemas[table]
            with writing_to(self._directory):
                self._writers[table].write_table(pa.Table.from_pylist(list(rows), schema=schema))
            self._rows[table] += len(rows)

    def finish(self, **about: Any) -> Manifest:
        """Close the tables, write the manifest from ``about`` (its fields), and rename.

        Raises StoreError where the disk takes no more, or the name was taken meanwhile.
        """
        with writing_to(self._directory):
            for writer in self._writers.values():
                writer.close()
            files = {
                f"{name}.parquet": describe_file(self._path(name), rows)
                for name, rows in self._rows.items()
            }
            manifest = Manifest(files=files, **about)
            (self._partial / MANIFEST_NAME).write_text(manifest_text(manifest))
            for path in (*self._partial.iterdir(), self._partial):
                flush(path)
            self._partial.rename(self._directory)
        return manifest

    def _path(self, table: str) -> Path:
        return self._partial / f"{table}.parquet"

    def _discard(self) -> None:
        for writer in self._writers.values():
            # Closing writes what is left: on a full disk that fails once more.
            with suppress(OSError, pa.ArrowException):
                writer.close()
        shutil.rmtree(self._partial, ignore_errors=True)


@contextmanager
def writing_to(directory: Path) -> Iterator[None]:
    """Raise StoreError, with the reason, where something cannot be written to an export."""
    try:
        yield
    except (OSError, OverflowError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"export {directory}", "a folder that can be written", reason) from error


def flush(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk before anything leads to them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_manifest(directory: Path, kind: str) -> Manifest:
    """Read an export's manifest and prove that its files are the ones it was written with.

    Raises StoreError where the folder is no finished export of ``kind``, a field is not what it
    must be, or a file is missing or has another digest.
    """
    manifest = load_manifest(directory, kind)
    for name, about in manifest.files.items():
        check_digest(directory / name, about["sha256"])
    return manifest


def check_digest(path: Path, expected: str) -> None:
    """Prove that a file has a sha256. Raises StoreError where it is missing or has another."""
    try:
        digest = _sha256(path)
    except OSError as error:
        raise StoreError(f"export file {path}", "a readable file", error.strerror) from error
    if digest != expected:
        raise StoreError(f"export file {path}", f"sha256 {expected}", digest)


def describe_file(path: Path, rows: int) -> dict[str, Any]:
    """Return what a manifest says of a file. Raises OSError where it cannot be read."""
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
