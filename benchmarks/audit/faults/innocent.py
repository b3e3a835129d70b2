"""Variants of an honest node's export: nothing in them is anybody's fault."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.audit.exports.shape import Blocks, hash_of
from chainkit.exports import (
    MANIFEST_NAME,
    Manifest,
    describe_file,
    files_of,
    load_manifest,
    manifest_text,
)

_TABLE: Final = "envelopes"
_FINALITY_BLOCKS: Final = 4


def behind(directory: Path) -> None:
    """Leave out the second half of the blocks, as a node that has not seen them."""
    manifest = load_manifest(directory, "node")
    _cover(directory, manifest, manifest.from_block, _middle(manifest))


def waiting_for_finality(directory: Path) -> None:
    """Leave out the newest blocks, as a node that takes in final ones only."""
    manifest = load_manifest(directory, "node")
    last = manifest.to_block - _FINALITY_BLOCKS
    _cover(directory, replace(manifest, final_block=last), manifest.from_block, last)


def beginning_later(directory: Path) -> None:
    """Leave out the first half of the blocks, as a node that follows the chain since then."""
    manifest = load_manifest(directory, "node")
    _cover(directory, manifest, _middle(manifest), manifest.to_block)


def in_other_order(directory: Path) -> None:
    """Put all rows into one file, the last one first."""
    manifest = load_manifest(directory, "node")
    rows = _read(directory, manifest)
    backwards = rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))
    _write(directory, manifest, [("", backwards, None)])


def in_other_files(directory: Path) -> None:
    """Cut the same rows at other blocks."""
    manifest = load_manifest(directory, "node")
    _cover(directory, manifest, manifest.from_block, manifest.to_block, ranges=7)


INNOCENT: Final[Mapping[str, Callable[[Path], None]]] = {
    each.__name__: each
    for each in (behind, waiting_for_finality, beginning_later, in_other_order, in_other_files)
}


def _middle(manifest: Manifest) -> int:
    return (manifest.from_block + manifest.to_block) // 2


def _cover(directory: Path, manifest: Manifest, first: int, last: int, ranges: int = 2) -> None:
    rows = _read(directory, manifest)
    number = rows["block_number"]
    size = -(-(last - first + 1) // ranges)
    parts = []
    for start in range(first, last + 1, size):
        blocks = Blocks(start, min(start + size - 1, last))
        is_held = pc.and_(
            pc.greater_equal(number, blocks.first), pc.less_equal(number, blocks.last)
        )
        parts.append((f"/{blocks.name}", rows.filter(is_held), blocks))
    about = replace(
        manifest,
        from_block=first,
        to_block=last,
        to_block_hash="0x" + hash_of(last).hex(),
        range_blocks=None,
    )
    _write(directory, about, parts)


def _read(directory: Path, manifest: Manifest) -> pa.Table:
    return pa.concat_tables(
        pq.read_table(directory / name) for name in files_of(manifest, _TABLE)
    ).combine_chunks()


def _write(
    directory: Path,
    manifest: Manifest,
    parts: Iterable[tuple[str, pa.Table, Blocks | None]],
) -> None:
    """Replace the table's files; each part is the end of a name, its rows and its blocks."""
    shutil.rmtree(directory / _TABLE)
    files = {}
    for end, rows, blocks in parts:
        path = directory / f"{_TABLE}{end}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path)
        place = {"from_block": blocks.first, "to_block": blocks.last} if blocks else {}
        files[path.relative_to(directory).as_posix()] = describe_file(path, rows.num_rows) | place
    (directory / MANIFEST_NAME).write_text(manifest_text(replace(manifest, files=files)))
