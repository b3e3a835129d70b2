"""Whole exports: written at once, as a file per table and a manifest, and read as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from chainkit.exports import ExportFolder, Manifest

Row = Mapping[str, Any]


def write_folder(
    directory: Path,
    schemas: Mapping[str, pa.Schema],
    chunks: Mapping[str, Sequence[Sequence[Row]]],
    **about: Any,
) -> Manifest:
    """Write chunks of rows per table, and a manifest of ``about``."""
    with ExportFolder(directory, about["kind"], schemas) as folder:
        files = dict(
            folder.write(name, schema, _tuples(schema, chunks[name]), is_finished=True)
            for name, schema in schemas.items()
        )
        manifest = Manifest(files=files, **about)
        folder.publish(manifest)
    return manifest


def contents_of(folder: Path) -> dict[str, bytes]:
    """The bytes of each file, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _tuples(schema: pa.Schema, chunks: Sequence[Sequence[Row]]) -> list[list[tuple[Any, ...]]]:
    return [[tuple(row[name] for name in schema.names) for row in rows] for rows in chunks if rows]
