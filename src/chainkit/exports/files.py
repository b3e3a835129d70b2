"""The files of an export: written under temporary names, and proved by their digests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from chainkit.documents.files import unreadable
from chainkit.errors import StoreError
from chainkit.exports.manifest import Manifest, load_manifest


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


def read_manifest(
    directory: Path, kind: str, report: Callable[[int], None] = lambda more: None
) -> Manifest:
    """Read an export's manifest and prove that its files are the ones it was written with.

    ``report`` is told how many more files are proved. Raises StoreError where the folder is no
    finished export of ``kind``, a field is not what it must be, or a file is missing or has another
    digest.
    """
    manifest = load_manifest(directory, kind)
    check_files(directory, manifest, report)
    return manifest


def check_files(
    directory: Path,
    manifest: Manifest,
    report: Callable[[int], None] = lambda more: None,
    threads: int | None = None,
) -> None:
    """Prove that an export's files are the ones it was written with.

    ``report`` is told how many more are proved; ``threads`` are as many as cores where none are
    named. Raises StoreError where a file is missing or has another digest, and whatever ``report``
    raises.
    """
    paths = [directory / name for name in manifest.files]
    digests = [about["sha256"] for about in manifest.files.values()]
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        # In the manifest's order, whichever comes first: the same fault gives the same error.
        for _ in pool.map(check_digest, paths, digests):
            report(1)


def check_digest(path: Path, expected: str) -> None:
    """Prove that a file has a sha256. Raises StoreError where it is missing or has another."""
    try:
        digest = _sha256(path)
    except OSError as error:
        raise unreadable(StoreError, f"export file {path}", error) from error
    if digest != expected:
        raise StoreError(f"export file {path}", f"sha256 {expected}", digest)


def describe_file(path: Path, rows: int) -> dict[str, Any]:
    """Return a manifest's entry for a file. Raises OSError where it cannot be read."""
    return {"rows": rows, "bytes": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
