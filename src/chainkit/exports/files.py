"""The files of an export: written under temporary names, and checked by their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.documents.files import open_regular, unreadable
from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports.manifest import MANIFEST_NAME, Manifest, check_inside
from chainkit.exports.reading import PARQUET_ERRORS

LARGEST_FILE: Final = 2**36
"""Bytes of a file in a node's export: a hole of any size takes no disk, but somebody's time."""

_PIECE: Final = 2**20


@contextmanager
def writing_to(directory: Path) -> Iterator[None]:
    """Raise StoreError, with the reason, where something cannot be written to an export."""
    try:
        yield
    except (OSError, OverflowError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"export {directory}", "a folder that can be written", reason) from error


def flush(path: Path) -> None:
    """Flush a file's bytes, or a folder's names, to the disk before anything refers to them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_files(
    directory: Path,
    manifest: Manifest,
    report: Callable[[int], None] = lambda more: None,
    threads: int | None = None,
) -> None:
    """Prove that an export's files are those that its writer wrote.

    ``report`` gets the number of files proved since its last call; without ``threads`` there are as
    many as cores. Raises StoreError where a file is missing, is no regular file or has another
    digest; in a node's export also where the file is elsewhere or is too large, and in a chain's
    where the manifest counts other rows. Raises all errors of ``report``.
    """
    check = partial(_check_file, directory, manifest.kind == "node")
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        # In the manifest's order, whichever comes first: the same fault gives the same error.
        for _ in pool.map(check, manifest.files, manifest.files.values()):
            report(1)


def _check_file(directory: Path, is_strange: bool, name: str, about: Mapping[str, Any]) -> None:
    path = directory / name
    if is_strange:
        check_inside(directory, name)
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if is_strange and size > LARGEST_FILE:
            raise StoreError(f"export file {path}", f"at most {LARGEST_FILE} bytes", size)
        _check_content(file, path, about["sha256"])
        # A node's manifest that counts wrongly is a finding of the audit, and no reason to stop.
        if not is_strange:
            _check_rows(file, path, about["rows"])


def check_digest(path: Path, expected: str) -> None:
    """Prove that a file has a sha256.

    Raises StoreError where the file is missing, is no regular file, or has another digest.
    """
    with _open(path) as file:
        _check_content(file, path, expected)


def _open(path: Path) -> BinaryIO:
    """Open a regular file, without waiting for the writer of a pipe."""
    subject = f"export file {path}"
    try:
        return open_regular(path, subject)
    except ConfigurationError as error:
        raise StoreError(subject, error.expected, error.got) from error


def _check_content(file: BinaryIO, path: Path, expected: str) -> None:
    try:
        digest = _digest(file)
    except OSError as error:
        raise unreadable(StoreError, f"export file {path}", error) from error
    if digest != expected:
        raise StoreError(f"export file {path}", f"sha256 {expected}", digest)


def _check_rows(file: BinaryIO, path: Path, listed: int) -> None:
    file.seek(0)
    try:
        rows = pq.read_metadata(file).num_rows
    except PARQUET_ERRORS as error:
        raise unreadable(StoreError, f"export file {path}", error, "Parquet") from error
    if rows != listed:
        raise StoreError(f"rows of {path}", f"{rows}, as the file has", listed, MANIFEST_NAME)


def describe_file(path: Path, rows: int) -> dict[str, Any]:
    """Return a manifest's entry for a file. Raises OSError where the file cannot be read."""
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content, in hex. Raises OSError."""
    with path.open("rb") as file:
        return _digest(file)


def _digest(file: BinaryIO) -> str:
    """Return the sha256 of as many bytes as the file has now: one that grows would never end."""
    left = os.fstat(file.fileno()).st_size
    digest = hashlib.sha256()
    while left and (piece := file.read(min(left, _PIECE))):
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest()
