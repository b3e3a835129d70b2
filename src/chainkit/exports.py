"""Exports: Parquet files and the manifest that says what they hold.

Both services write and read them: they are where operator and auditor meet. An export appears
whole or not at all, because it is written beside its destination and renamed when complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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

_SHOWN: Final = 80
"""Characters of a wrong value that an error repeats."""


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
    first_block: int | None = None
    """The deployment's, in an export of kind ``chain``: no contract has a log below it."""
    sequence_before: int | None = None
    """The contract's counter in the parent of the first block; None where it was not read."""
    sequence_after: int | None = None
    """The contract's counter in the last block; None where it was not read."""


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
            with self._writing():
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
            with self._writing():
                self._writers[table].write_table(pa.Table.from_pylist(list(rows), schema=schema))
            self._rows[table] += len(rows)

    def finish(self, **about: Any) -> Manifest:
        """Close the tables, write the manifest from ``about`` (its fields), and rename.

        Raises StoreError where the disk takes no more, or the name was taken meanwhile.
        """
        with self._writing():
            for writer in self._writers.values():
                writer.close()
            files = {
                f"{name}.parquet": {"rows": rows, "sha256": _sha256(self._path(name))}
                for name, rows in self._rows.items()
            }
            manifest = Manifest(files=files, **about)
            (self._partial / MANIFEST_NAME).write_text(_manifest_text(manifest))
            self._partial.rename(self._directory)
        return manifest

    def _path(self, table: str) -> Path:
        return self._partial / f"{table}.parquet"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, OverflowError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or error
            subject = f"export {self._directory}"
            raise StoreError(subject, "a folder that can be written", reason) from error

    def _discard(self) -> None:
        for writer in self._writers.values():
            # Closing writes what is left: on a full disk that fails once more.
            with suppress(OSError, pa.ArrowException):
                writer.close()
        shutil.rmtree(self._partial, ignore_errors=True)


def _manifest_text(manifest: Manifest) -> str:
    fields = {name: getattr(manifest, name) for name in Manifest.__slots__}
    content = {"format": MANIFEST_FORMAT, "tool": f"chainkit {__version__}"} | {
        name: value for name, value in fields.items() if value is not None
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def read_manifest(directory: Path, kind: str) -> Manifest:
    """Read an export's manifest and prove that its files are the ones it was written with.

    Raises StoreError where the folder is no finished export of ``kind``, a field is not what it
    must be, or a file is missing or has another digest.
    """
    subject = f"export {directory}"
    try:
        content = json.loads((directory / MANIFEST_NAME).read_text())
    except FileNotFoundError as error:
        raise StoreError(subject, f"a folder with {MANIFEST_NAME}", "none") from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(subject, f"a readable {MANIFEST_NAME}", error) from error
    if not isinstance(content, dict) or content.pop("format", None) != MANIFEST_FORMAT:
        raise StoreError(subject, f"manifest format {MANIFEST_FORMAT}", "another")
    content.pop("tool", None)
    try:
        manifest = Manifest(**content)
    except TypeError as error:
        raise StoreError(subject, "a complete manifest", error) from error
    _check_fields(manifest, subject)
    if manifest.kind != kind:
        raise StoreError(subject, f"an export of kind {kind}", manifest.kind)
    for name, about in manifest.files.items():
        _check_digest(directory / name, about["sha256"])
    return manifest


def _is_integer(bits: int) -> Callable[[Any], bool]:
    # JSON's true is Python's 1, but no number.
    return lambda value: type(value) is int and 0 <= value < 2**bits


def _is_text(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_mapping(
    is_name: Callable[[Any], bool], is_value: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict)
        and all(is_name(name) and is_value(inner) for name, inner in value.items())
    )


def _is_file(value: Any) -> bool:
    return isinstance(value, dict) and _is_text("[0-9a-f]{64}")(value.get("sha256"))


_BLOCK: Final = ("a height from 0 below 2**63", _is_integer(63))
_HASH: Final = ("0x and 64 hex digits", _is_text("0x[0-9a-fA-F]{64}"))
_COUNTER: Final = ("an integer from 0 below 2**64", _is_integer(64))

_FIELDS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "kind": ("chain or node", _is_text("chain|node")),
    "chain_id": ("an integer from 0 below 2**63", _is_integer(63)),
    "genesis_hash": _HASH,
    "contracts": (
        "names, each with 0x and 40 hex digits",
        _is_mapping(_is_text("[A-Za-z0-9]+"), _is_text("0x[0-9a-fA-F]{40}")),
    ),
    "from_block": _BLOCK,
    "to_block": _BLOCK,
    "to_block_hash": _HASH,
    # A name with a slash would be a file elsewhere.
    "files": (
        "Parquet files, each with its sha256",
        _is_mapping(_is_text(r"\w+\.parquet"), _is_file),
    ),
    "node_public_key": ("0x and 130 hex digits", _is_text("0x[0-9a-fA-F]{130}")),
    "first_block": _BLOCK,
    "sequence_before": _COUNTER,
    "sequence_after": _COUNTER,
}
"""Field to what it must be: an export comes from somebody whom the reader may not trust."""

_OPTIONAL: Final = frozenset(
    {"node_public_key", "first_block", "sequence_before", "sequence_after"}
)


def _check_fields(manifest: Manifest, subject: str) -> None:
    for name, (expected, is_valid) in _FIELDS.items():
        value = getattr(manifest, name)
        if not is_valid(value) and not (value is None and name in _OPTIONAL):
            shown = repr(value)
            short = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            raise StoreError(subject, f"{name}: {expected}", short, MANIFEST_NAME)


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
