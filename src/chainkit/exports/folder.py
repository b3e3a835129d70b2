"""A folder into which an export grows, so that its manifest is true at every moment.

New files are written in a hidden folder and moved to their names; only then does the manifest list
them: a writer that is killed in between leaves the previous manifest, whose files all exist. A file
that may still change has its digest in its name, so it is never overwritten.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from chainkit.documents.files import unreadable
from chainkit.errors import StoreError
from chainkit.exports.files import check_digest, describe_file, flush, writing_to
from chainkit.exports.manifest import (
    FILE_NAME,
    MANIFEST_NAME,
    Manifest,
    load_manifest,
    manifest_text,
    table_of,
)
from chainkit.exports.parquet import TableWriter

_STAGING: Final = ".partial"
_DIGEST_DIGITS: Final = 16


class ExportFolder:
    """A context manager that locks the folder; ``publish`` makes the written files the export."""

    def __init__(self, directory: Path, kind: str, tables: Iterable[str]) -> None:
        """Name a folder, existing or not, and the tables that it may hold."""
        self._directory = directory
        self._kind = kind
        self._tables = frozenset(tables)
        self._staging = directory / _STAGING
        self._staged: dict[str, Path] = {}
        self.manifest: Manifest | None = None
        """The folder's content since it was entered or last published; its files were not read."""

    @property
    def staging(self) -> Path:
        """The folder for files before they are published; removed at the end."""
        return self._staging

    def __enter__(self) -> Self:
        """Lock the folder, made where there is none.

        Raises StoreError where another export writes to the folder, it holds anything else, or it
        cannot be written.
        """
        with writing_to(self._directory):
            self._is_new = not self._directory.exists()
            self._directory.mkdir(parents=True, exist_ok=True)
            # The lock of a folder ends with the process and leaves no file behind.
            self._descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self._take()
            except BaseException:
                os.close(self._descriptor)
                raise
        return self

    def _take(self) -> None:
        subject = f"export {self._directory}"
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(subject, "a folder that nobody writes to", "another export") from error
        if (self._directory / MANIFEST_NAME).exists():
            self.manifest = load_manifest(self._directory, self._kind)
        elif strangers := [p.name for p in self._directory.iterdir() if not self._is_ours(p)]:
            raise StoreError(subject, "an export, or an empty folder", min(strangers))
        shutil.rmtree(self._staging, ignore_errors=True)
        self._staging.mkdir()

    def __exit__(self, *_: object) -> None:
        """Remove all files that were not published."""
        shutil.rmtree(self._staging, ignore_errors=True)
        if self._is_new:
            with suppress(OSError):
                self._directory.rmdir()
        os.close(self._descriptor)

    def write(
        self,
        name: str,
        schema: pa.Schema,
        chunks: Iterable[Sequence[Sequence[Any]]],
        is_finished: bool,
    ) -> tuple[str, dict[str, Any]]:
        """Write a table, or a range of a table, to a file; return the file's name and its entry.

        ``name`` has no suffix; rows have the columns of ``schema``, and come some at a time. Raises
        StoreError for a row that does not fit the schema, or a full disk.
        """
        staged = self._staging / f"{len(self._staged)}.parquet"
        with writing_to(self._directory):
            rows = _write_parquet(staged, schema, chunks)
        return self.add(name, staged, rows, is_finished)

    def add(
        self, name: str, staged: Path, rows: int, is_finished: bool
    ) -> tuple[str, dict[str, Any]]:
        """Take a Parquet file that lies in ``staging`` into the export, as ``write`` does."""
        with writing_to(self._directory):
            about = describe_file(staged, rows)
        digest = "" if is_finished else "." + about["sha256"][:_DIGEST_DIGITS]
        full_name = f"{name}{digest}.parquet"
        self._staged[full_name] = staged
        return full_name, about

    def check(self, files: Mapping[str, Mapping[str, Any]], digests: bool) -> None:
        """Prove that files exist with the sizes in a manifest, and with its digests if asked for.

        Raises StoreError that names the first file for which this fails.
        """
        for name, about in files.items():
            path = self._directory / name
            try:
                size = path.stat().st_size
            except OSError as error:
                raise unreadable(StoreError, f"export file {path}", error) from error
            if size != about.get("bytes"):
                raise StoreError(f"export file {path}", f"{about.get('bytes')} bytes", size)
            if digests:
                check_digest(path, about["sha256"])

    def publish(self, manifest: Manifest) -> None:
        """Make a manifest's files the export, and delete files that it no longer lists.

        Rows that come later go into the next export. Raises StoreError where the disk is full.
        """
        with writing_to(self._directory):
            if self._would_overwrite(manifest):
                # Final rows changed: the previous manifest is not true in any case.
                (self._directory / MANIFEST_NAME).unlink()
                flush(self._directory)
            for name, staged in self._staged.items():
                (self._directory / name).parent.mkdir(exist_ok=True)
                staged.replace(self._directory / name)
            for folder in {self._directory, *((self._directory / n).parent for n in self._staged)}:
                flush(folder)
            new = self._staging / MANIFEST_NAME
            new.write_text(manifest_text(manifest))
            flush(new)
            new.replace(self._directory / MANIFEST_NAME)
            flush(self._directory)
            for path in self._listed_by_nobody(manifest):
                path.unlink()
        self._staged.clear()
        self.manifest = manifest

    def _would_overwrite(self, manifest: Manifest) -> bool:
        before: Mapping[str, Mapping[str, Any]] = self.manifest.files if self.manifest else {}
        return any(
            name in before and before[name]["sha256"] != manifest.files[name]["sha256"]
            for name in self._staged
        )

    def _listed_by_nobody(self, manifest: Manifest) -> Iterator[Path]:
        for path in [*self._directory.glob("*.parquet"), *self._directory.glob("*/*.parquet")]:
            name = path.relative_to(self._directory).as_posix()
            if self._is_table_file(name) and name not in manifest.files:
                yield path

    def _is_ours(self, path: Path) -> bool:
        """Return whether a killed export may have left this file in a folder without manifest."""
        if path.name == _STAGING:
            return True
        if path.is_dir():
            names = [f"{path.name}/{inner.name}" for inner in path.iterdir()]
            return path.name in self._tables and all(map(self._is_table_file, names))
        return self._is_table_file(path.name)

    def _is_table_file(self, name: str) -> bool:
        return table_of(name) in self._tables and re.fullmatch(FILE_NAME, name) is not None


def _write_parquet(path: Path, schema: pa.Schema, chunks: Iterable[Sequence[Sequence[Any]]]) -> int:
    with TableWriter(path, schema) as writer:
        for chunk in chunks:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*chunk, strict=True), schema, strict=True)
            ]
            writer.append(pa.Table.from_arrays(columns, schema=schema))
    flush(path)
    return writer.rows
