"""Exports: Parquet files and the manifest that says what they hold.

Both services write and read them: they are where operator and auditor meet. An export appears
whole or not at all, because it is written beside its destination and renamed when complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit import __version__
from chainkit.errors import StoreError

MANIFEST_NAME: Final = "manifest.json"
MANIFEST_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds, from where, and the digests of its files."""

    kind: str
    """``chain`` or ``node``."""
    chain_id: int
    genesis_hash: str
    """0x and 64 hex digits."""
    contracts: Mapping[str, str]
    """Contract name to 0x address."""
    from_block: int
    to_block: int
    """The last block that is covered."""
    to_block_hash: str
    """0x and 64 hex digits: the export speaks of the chain that ends in this block."""
    files: Mapping[str, Mapping[str, Any]]
    """File name to ``rows`` and ``sha256``."""
    node_public_key: str | None = None
    """0x and 130 hex digits of the key that signed, in an export of kind ``node``."""


class ExportWriter:
    """Writes the tables of an export; ``finish`` makes it visible under its name."""

    def __init__(self, directory: Path, schemas: Mapping[str, pa.Schema]) -> None:
        """Open one Parquet file per table. Raises StoreError if ``directory`` exists."""
        if directory.exists():
            raise StoreError(f"export {directory}", "a folder that does not exist yet", "one")
        self._directory = directory
        self._partial = directory.with_name(f".{directory.name}.partial")
        self._schemas = schemas
        self._rows = dict.fromkeys(schemas, 0)
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> Self:
        """Make the folder in which the export grows."""
        try:
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True)
        except OSError as error:
            subject = f"export {self._directory}"
            raise StoreError(subject, "a folder that can be written", error.strerror) from error
        for name, schema in self._schemas.items():
            self._writers[name] = pq.ParquetWriter(self._partial / f"{name}.parquet", schema)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing behind of an export that was not finished."""
        for writer in self._writers.values():
            writer.close()
        shutil.rmtree(self._partial, ignore_errors=True)

    def write(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to a table; keys are the columns of its schema."""
        if rows:
            schema = self._schemas[table]
            self._writers[table].write_table(pa.Table.from_pylist(list(rows), schema=schema))
            self._rows[table] += len(rows)

    def finish(self, **about: Any) -> Manifest:
        """Close the tables, write the manifest from ``about`` (its fields), and rename."""
        for writer in self._writers.values():
            writer.close()
        files = {
            f"{name}.parquet": {"rows": rows, "sha256": _sha256(self._partial / f"{name}.parquet")}
            for name, rows in self._rows.items()
        }
        manifest = Manifest(files=files, **about)
        content = {"format": MANIFEST_FORMAT, "tool": f"chainkit {__version__}"} | {
            name: getattr(manifest, name) for name in Manifest.__slots__
        }
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        (self._partial / MANIFEST_NAME).write_text(text)
        self._partial.rename(self._directory)
        return manifest


def read_manifest(directory: Path, kind: str) -> Manifest:
    """Read an export's manifest and prove that its files are the ones it was written with.

    Raises StoreError where the folder is no finished export of ``kind``, or a file is missing
    or has another digest.
    """
    subject = f"export {directory}"
    try:
        content = json.loads((directory / MANIFEST_NAME).read_text())
    except FileNotFoundError as error:
        raise StoreError(subject, f"a folder with {MANIFEST_NAME}", "none") from error
    except (OSError, ValueError) as error:
        raise StoreError(subject, f"a readable {MANIFEST_NAME}", error) from error
    if not isinstance(content, dict) or content.pop("format", None) != MANIFEST_FORMAT:
        raise StoreError(subject, f"manifest format {MANIFEST_FORMAT}", "another")
    content.pop("tool", None)
    try:
        manifest = Manifest(**content)
    except TypeError as error:
        raise StoreError(subject, "a complete manifest", error) from error
    if manifest.kind != kind:
        raise StoreError(subject, f"an export of kind {kind}", manifest.kind)
    for name, digest in _digests(manifest, subject).items():
        _check_digest(directory / name, digest)
    return manifest


def _digests(manifest: Manifest, subject: str) -> dict[str, str]:
    try:
        return {name: about["sha256"] for name, about in manifest.files.items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise StoreError(subject, "a digest of each file", repr(error)) from error


def _check_digest(path: Path, expected: str) -> None:
    try:
        digest = _sha256(path)
    except OSError as error:
        raise StoreError(f"export file {path}", "a readable file", error.strerror) from error
    if digest != expected:
        raise StoreError(f"export file {path}", f"sha256 {expected}", digest)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
