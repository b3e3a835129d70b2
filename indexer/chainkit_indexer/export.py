"""Writes a node's rows as Parquet, for an auditor: one state, pinned to the cursor's block.

The folder grows. Ranges of blocks that are final are written once and have the same bytes in every
export with the same key. Files of other blocks, and tables that are not a function of the chain,
are written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
from sqlalchemy import Connection, FromClause, Select, func, select

from chainkit.errors import StoreError
from chainkit.exports import ExportFolder, Manifest
from chainkit.exports.tables import ENVELOPES, JOURNAL, QUARANTINE, REGISTRY_UPDATES
from chainkit.text.hexadecimal import hex0x
from chainkit_indexer.config import DEFAULT_RANGE_BLOCKS
from chainkit_indexer.storage import schema
from chainkit_indexer.storage.block_ranges import rows_within
from chainkit_indexer.storage.blocks import read_final_block, read_position
from chainkit_indexer.storage.provenance import read_runs
from chainkit_indexer.storage.store import Store

EXPORT_KIND: Final = "node"

_FETCHED_ROWS: Final = 1000
"""Rows that are read from the database at a time. The export's writer decides about row groups."""

_RANGED: Final = {
    "envelopes": (ENVELOPES, schema.envelope_logs, schema.chain_envelopes),
    "quarantine": (QUARANTINE, schema.quarantine, schema.quarantine),
}
"""Columns, the table whose sequence ids and blocks bound a range, and the rows themselves."""
_WHOLE: Final = {
    "journal": (JOURNAL, schema.journal),
    "registry_updates": (REGISTRY_UPDATES, schema.registry_updates),
}

_SAME_FOREVER: Final = (
    "chain_id",
    "genesis_hash",
    "node_public_key",
    "contracts",
    "from_block",
)
"""Fields that a folder's exports have in common; the rest of a manifest moves with the cursor."""


class FileProgress(Protocol):
    """Reports how many of an export's files are written."""

    def __call__(self, done: int, files: int, /) -> None:
        """Report that ``done`` of ``files`` files are written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An export's content now, and the part that an earlier export wrote."""

    manifest: Manifest
    kept: tuple[str, ...]
    """Files of finished ranges that did not change."""


@dataclass(frozen=True, slots=True)
class _Range:
    first: int
    last: int
    is_finished: bool

    def file_name(self, table: str) -> str:
        return f"{table}/{self.first:010}-{self.last:010}"


def write_export(
    store: Store,
    directory: Path,
    range_blocks: int | None = None,
    check_digests: bool = False,
    progress: FileProgress = lambda done, files: None,
) -> Exported:
    """Bring the export in a folder up to the cursor; the same state gives the same bytes.

    ``range_blocks`` is the folder's own where it is not given, or else DEFAULT_RANGE_BLOCKS. Safe
    while an indexer writes: everything is read in one transaction, and nothing is published before
    the transaction has succeeded. The sizes of existing finished ranges are checked, and with
    ``check_digests`` their digests. Raises StoreUnavailable where the transaction failed, and
    StoreError where nothing was indexed so far, the folder holds anything else (another node's or
    chain's export, other ranges, a file that changed), or cannot be written.
    """
    with ExportFolder(directory, EXPORT_KIND, [*_RANGED, *_WHOLE]) as folder:
        with store.reading() as connection:
            about = _about(store, connection)
            about["range_blocks"] = _range_blocks(directory, folder.manifest, range_blocks)
            kept = _kept_files(connection, directory, folder.manifest, about)
            folder.check(kept, check_digests)
            files = _write_files(connection, folder, about, store, kept, progress)
        # Only now: the end of the transaction may show that the rows are not one state.
        manifest = Manifest(files=files, **about)
        folder.publish(manifest)
    return Exported(manifest, tuple(sorted(kept)))


def _about(store: Store, connection: Connection) -> dict[str, Any]:
    identity, position = store.identity, read_position(connection)
    if position is None or position.header.number < identity.first_block:
        raise StoreError(f"database {store.name}", "an indexed block", "none yet")
    final_block = read_final_block(connection)
    return {
        "kind": EXPORT_KIND,
        "chain_id": identity.chain_id,
        "genesis_hash": hex0x(identity.genesis_hash),
        "contracts": {each.name: hex0x(each.address) for each in identity.contracts},
        "from_block": identity.first_block,
        "to_block": position.header.number,
        "to_block_hash": hex0x(position.header.hash),
        "node_public_key": hex0x(identity.node_public_key),
        "final_block": final_block if final_block >= 0 else None,
        "last_reorg": connection.scalar(select(func.max(schema.reorgs.c.id))) or 0,
        "registry": _registry(connection),
        "established": [
            {"from_block": run.first_block, "to_block": run.last_block, "how": str(run.provenance)}
            for run in read_runs(connection)
        ],
    }


def _range_blocks(directory: Path, before: Manifest | None, asked: int | None) -> int:
    if before is None:
        return asked or DEFAULT_RANGE_BLOCKS
    found, subject = before.range_blocks, f"export {directory}"
    if not found:
        raise StoreError(subject, "range_blocks from 1 in its manifest", found)
    if asked not in (None, found):
        raise StoreError(subject, f"--range-blocks {found} as it was made with", asked)
    return found


def _registry(connection: Connection) -> dict[str, Any] | None:
    row = connection.execute(select(schema.registry_cursor)).one_or_none()
    if row is None or row.block_number is None:
        return None
    return {
        "chain_id": row.chain_id,
        "address": hex0x(row.address),
        "block_number": row.block_number,
        "block_hash": hex0x(row.block_hash),
    }


def _kept_files(
    connection: Connection, directory: Path, before: Manifest | None, about: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """Return the finished ranges of an earlier export that no reorg has changed since.

    A later reorg reaches into a finished range only if an operator rewinds below the final block.
    """
    if before is None:
        return {}
    subject = f"export {directory}"
    for name in _SAME_FOREVER:
        expected, got = about[name], getattr(before, name)
        if expected != got:
            raise StoreError(subject, f"{name} {expected}", got)
    reorgs = schema.reorgs.c
    since = select(func.min(reorgs.ancestor_number)).where(reorgs.id > before.last_reorg)
    true_up_to = connection.scalar(since)
    kept = {
        name: file
        for name, file in before.files.items()
        if file.get("finished") and (true_up_to is None or file["to_block"] <= true_up_to)
    }
    highest = max((file["to_block"] for file in kept.values()), default=-1)
    final_block = -1 if about["final_block"] is None else about["final_block"]
    if highest > final_block:
        expected = f"ranges finished up to block {final_block} at most, as in the database"
        raise StoreError(subject, expected, f"up to block {highest}")
    return kept


def _write_files(
    connection: Connection,
    folder: ExportFolder,
    about: Mapping[str, Any],
    store: Store,
    kept: Mapping[str, Mapping[str, Any]],
    progress: FileProgress,
) -> dict[str, Mapping[str, Any]]:
    files = dict(kept)
    ranges = [
        (table, each)
        for each in _ranges(about)
        for table in _RANGED
        if f"{each.file_name(table)}.parquet" not in kept
    ]
    total = len(ranges) + len(_WHOLE)
    for done, (table, each) in enumerate(ranges, 1):
        rows = _rows_in_blocks(connection, table, store, each)
        columns, _, _ = _RANGED[table]
        name, file = folder.write(each.file_name(table), columns, rows, each.is_finished)
        place = {"from_block": each.first, "to_block": each.last, "finished": each.is_finished}
        files[name] = file | place
        progress(done, total)
    for done, (table, (columns, source)) in enumerate(_WHOLE.items(), len(ranges) + 1):
        query = _select(columns, source).order_by(*source.primary_key.columns)
        name, file = folder.write(table, columns, _rows(connection, query), is_finished=False)
        files[name] = file
        progress(done, total)
    return files


def _ranges(about: Mapping[str, Any]) -> Iterator[_Range]:
    """Cut the blocks at multiples of the range's size, so that all nodes use the same ranges."""
    first, last, size = about["from_block"], about["to_block"], about["range_blocks"]
    final_block = -1 if about["final_block"] is None else about["final_block"]
    while first <= last:
        end = (first // size + 1) * size - 1
        yield _Range(first, min(end, last), is_finished=end <= min(final_block, last))
        first = end + 1


def _rows_in_blocks(
    connection: Connection, table: str, store: Store, blocks: _Range
) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the rows in the order of originators and sequence ids."""
    identity = store.identity
    columns, logs, source = _RANGED[table]
    for originator_id in sorted({each.originator_id for each in identity.contracts}):
        within = rows_within(
            connection,
            logs,
            source.c,
            originator_id,
            (blocks.first, blocks.last),
            identity.sparse_originator_ids,
        )
        if within is not None:
            rows = _select(columns, source).where(within)
            yield from _rows(connection, rows.order_by(source.c.sequence_id))


def _select(columns: pa.Schema, source: FromClause) -> Select[Any]:
    return select(*(source.c[name] for name in columns.names))


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """Stream the rows: the database gives so many at a time."""
    options = {"yield_per": _FETCHED_ROWS}
    with connection.execute(query, execution_options=options) as rows:
        yield from rows.partitions()
