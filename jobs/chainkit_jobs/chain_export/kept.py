"""The files that an earlier run left in a folder, and how many are still the chain's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from chainkit.chain import Endpoint
from chainkit.documents.files import unreadable
from chainkit.errors import StoreError
from chainkit.exports import Manifest, check_digest
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockReference
from chainkit_jobs.chain_export.chunk import reference_of
from chainkit_jobs.chain_export.range_files import BlockRange, ranges_of
from chainkit_jobs.chain_export.sequence_check import PayloadLogs
from chainkit_jobs.counters import counters_of

_SAME_FOREVER: Final = (
    *("source", "chain_id", "genesis_hash", "contracts", "payload_contracts"),
    *("from_block", "first_block", "first_payload_block"),
)
"""The settings that all runs share which write to one folder."""


class KeptRanges:
    """The finished ranges of an earlier run; ``drop_retracted`` leaves those still on the chain."""

    def __init__(self, directory: Path, manifest: Manifest, size: int) -> None:
        """Take the ranges of ``size`` blocks that a folder's manifest calls finished."""
        self._directory = directory
        self._manifest = manifest
        self._ranges: list[BlockRange] = []
        for blocks in ranges_of(manifest.from_block, manifest.to_block, size):
            if not all(manifest.files.get(name, {}).get("finished") for name in _names(blocks)):
                break
            self._ranges.append(blocks)

    @property
    def files(self) -> dict[str, Mapping[str, Any]]:
        """The manifest's entries of the ranges' files, by name."""
        return {n: self._manifest.files[n] for blocks in self._ranges for n in _names(blocks)}

    @property
    def end(self) -> BlockReference | None:
        """The last block of the last range; None where there is no range."""
        return self._end_of(self._ranges[-1]) if self._ranges else None

    def drop_retracted(
        self, endpoint: Endpoint, end: BlockReference, report: Callable[[str], None]
    ) -> None:
        """Drop, and report, ranges whose last block is not on the chain that ends in ``end``."""
        dropped: BlockRange | None = None
        while self._ranges:
            last = self._end_of(self._ranges[-1])
            now = end if last.number == end.number else endpoint.header(last.number).reference
            if now == last:
                break
            dropped = self._ranges.pop()
        if dropped is not None:
            report(
                f"{self._directory}: the chain was reorganised since the last run, "
                f"fetching block {dropped.first} and all above again"
            )

    def last_sequence_ids(self, payload_logs: PayloadLogs) -> dict[int, int]:
        """Return the sequence id of the last payload of each originator that counts and has one."""
        found: dict[int, int] = {}
        for blocks in reversed(self._ranges):
            path = self._proved(blocks, "logs")
            with _reading(path):
                file = pq.ParquetFile(path)
                for group in reversed(range(file.num_row_groups)):
                    for log in reversed(payload_logs.of(file.read_row_group(group).to_pylist())):
                        event = payload_logs.event_of(log)
                        if event.originator_id in payload_logs.counted:
                            found.setdefault(event.originator_id, event.sequence_id)
                    if len(found) == len(payload_logs.counted):
                        return found
        return found

    def _end_of(self, blocks: BlockRange) -> BlockReference:
        if blocks.last == self._manifest.to_block:
            return BlockReference(blocks.last, bytes.fromhex(self._manifest.to_block_hash[2:]))
        path = self._proved(blocks, "blocks")
        with _reading(path):
            file = pq.ParquetFile(path)
            last = file.read_row_group(file.num_row_groups - 1, ["number", "hash"])
            return reference_of(last.slice(last.num_rows - 1).to_pylist()[0])

    def _proved(self, blocks: BlockRange, table: str) -> Path:
        name = f"{blocks.file_name(table)}.parquet"
        check_digest(self._directory / name, self._manifest.files[name]["sha256"])
        return self._directory / name


def check_continues(
    directory: Path, manifest: Manifest, about: Mapping[str, Any], end: BlockReference
) -> None:
    """Raise StoreError where a folder's export is no earlier one of the chain in ``about``.

    ``end`` is the last block to export: where the folder's export is longer, the endpoint lags
    behind, or the request is for less than is there.
    """
    subject = f"export {directory}"
    for name in _SAME_FOREVER:
        expected, got = about[name], getattr(manifest, name)
        if expected != got:
            raise StoreError(subject, f"{name} {expected}", got)
    if manifest.to_block > end.number:
        raise StoreError(
            subject,
            f"none above block {end.number}, the last to export",
            f"{manifest.to_block} {manifest.to_block_hash}",
        )


def is_complete(manifest: Manifest, end: BlockReference) -> bool:
    """Return whether an export reaches a block already, proved by the contracts' counters."""
    is_same_end = (manifest.to_block, manifest.to_block_hash) == (end.number, hex0x(end.hash))
    return is_same_end and all(each.after is not None for each in counters_of(manifest).values())


def range_size(directory: Path, manifest: Manifest | None, asked: int | None, default: int) -> int:
    """Return the blocks per range: the requested number, the folder's own, or a default.

    Raises StoreError where the folder has another number, or none.
    """
    if manifest is None:
        return asked or default
    found, subject = manifest.range_blocks, f"export {directory}"
    if not found:
        raise StoreError(subject, "range_blocks from 1 in its manifest", found)
    if asked not in (None, found):
        raise StoreError(subject, f"--range-blocks {found} as it was made with", asked)
    return found


def _names(blocks: BlockRange) -> Sequence[str]:
    return [f"{blocks.file_name(table)}.parquet" for table in CHAIN_TABLES]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        subject = f"export file {path}"
        raise unreadable(StoreError, subject, error, "a readable Parquet file") from error
