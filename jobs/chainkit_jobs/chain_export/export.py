"""Brings a chain export up to a block: range by range, each published when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from chainkit.chain import Endpoint
from chainkit.contracts.counter import read_counter, require_counter
from chainkit.contracts.deployment import DeploymentRecord
from chainkit.contracts.followed import FollowedDeployment
from chainkit.errors import ConfigurationError
from chainkit.exports import ExportFolder, Manifest
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.text.hexadecimal import hex0x
from chainkit.types import BlockHeader, BlockReference
from chainkit_jobs.chain_export.chunk import (
    CHUNK_BLOCKS,
    Chunk,
    ChunkReader,
    changed,
    check_link,
)
from chainkit_jobs.chain_export.fetch import BlockReader
from chainkit_jobs.chain_export.in_order import worked_in_order
from chainkit_jobs.chain_export.kept import (
    KeptRanges,
    check_continues,
    is_complete,
    range_size,
)
from chainkit_jobs.chain_export.limits import DEFAULT_PARALLEL, DEFAULT_RANGE_BLOCKS
from chainkit_jobs.chain_export.range_files import BlockRange, RangeFiles, ranges_of
from chainkit_jobs.chain_export.sequence_check import PayloadLogs, SequenceCheck
from chainkit_jobs.counters import Counted, counters_of
from chainkit_jobs.recorded import Recorded, recorded


class ProgressCallback(Protocol):
    """Takes the progress of an export."""

    def __call__(self, more: int, blocks: int) -> None:
        """Take note that so many more of the blocks to fetch were fetched."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A folder's content now, and the part that an earlier run wrote."""

    manifest: Manifest
    kept: tuple[str, ...]
    """Files that did not change."""
    fetched_blocks: int
    """0 where there was nothing new."""


def resolve_range(
    endpoint: Endpoint,
    record: DeploymentRecord | FollowedDeployment,
    head: BlockHeader,
    from_block: int | None,
    to_block: int | None,
) -> tuple[int, BlockReference]:
    """Return the first block and the last one, pinned by its hash.

    Without bounds: from the first block that can hold a log of the contracts, to the head.
    Raises ConfigurationError for a range that is empty or ends above the head.
    """
    first = recorded(record).first_block if from_block is None else from_block
    last = head.number if to_block is None else to_block
    if last > head.number:
        raise ConfigurationError("--to-block", f"at most the head, {head.number}", last)
    if first > last:
        raise ConfigurationError("--from-block", f"at most the last block, {last}", first)
    end = head if last == head.number else endpoint.header(last)
    return first, end.reference


def export_chain(
    endpoint: Endpoint,
    record: DeploymentRecord | FollowedDeployment,
    first_block: int,
    end: BlockReference,
    directory: Path,
    range_blocks: int | None = None,
    parallel: int = DEFAULT_PARALLEL,
    progress: ProgressCallback = lambda more, blocks: None,
    report: Callable[[str], None] = lambda sentence: None,
) -> Exported:
    """Bring the export in a folder up to ``end``, on the chain that ends in it.

    ``range_blocks`` is the folder's own where it is not given, or else DEFAULT_RANGE_BLOCKS; at
    most ``2 * parallel`` chunks are in memory. A killed export leaves the last published state, and
    the next run continues after it; ranges that a reorg retracted since are fetched again, and
    ``report`` is called with a line about this. Raises InconsistentAnswer where the answers
    contradict each other or the contracts' counters, or the chain is no longer the pinned one:
    asking again may help; StoreError, with nothing changed, where the folder holds anything but an
    earlier export of the same chain, or a file of it changed its size.
    """
    with ExportFolder(directory, "chain", CHAIN_TABLES) as folder:
        before = folder.manifest
        size = range_size(directory, before, range_blocks, DEFAULT_RANGE_BLOCKS)
        deployment = recorded(record)
        about = {
            "kind": "chain",
            "source": "json-rpc",
            "from_block": first_block,
            "range_blocks": size,
            **deployment.about,
        }
        kept: KeptRanges | None = None
        if before is not None:
            check_continues(directory, before, about, end)
            folder.check(before.files, digests=False)
            if is_complete(before, end):
                return Exported(before, tuple(sorted(before.files)), 0)
            kept = KeptRanges(directory, before, size)
            kept.drop_retracted(endpoint, end, report)
        run = _Run(endpoint, deployment, folder, directory, about, end)
        run.begin(first_block, kept)
        fetched = run.fetch(size, parallel, progress)
        assert folder.manifest is not None
        return Exported(folder.manifest, tuple(sorted(kept.files if kept else ())), fetched)


class _Run:
    """One run: what is proved so far, and what the manifest will list."""

    def __init__(
        self,
        endpoint: Endpoint,
        deployment: Recorded,
        folder: ExportFolder,
        directory: Path,
        about: Mapping[str, Any],
        end: BlockReference,
    ) -> None:
        self._endpoint = endpoint
        self._deployment = deployment
        self._folder = folder
        self._directory = directory
        self._about = dict(about)
        self._end = end
        self._payload_logs = PayloadLogs(deployment.contracts)
        # Read now: state of the last block may be pruned by the time a long export ends.
        self._after: Mapping[int, int | None] = self._counters(end)

    def begin(self, first_block: int, kept: KeptRanges | None) -> None:
        """Begin after the kept ranges, or with the parent of the first block."""
        before = self._folder.manifest
        reached = None if kept is None else kept.end
        if kept is None or before is None or reached is None:
            self._files: dict[str, Mapping[str, Any]] = {}
            header = self._endpoint.header(first_block)
            self._last = BlockReference(first_block - 1, header.parent_hash)
            self._before = self._counters(self._last)
            numbers = self._before
        else:
            self._files = kept.files
            self._last = reached
            counted = counters_of(before)
            self._before = {key: counted[key].before or 0 for key in self._deployment.counters}
            numbers = self._numbers(before.to_block, counted, kept)
        self._sequence = SequenceCheck(self._endpoint.name, self._payload_logs, numbers)

    def _counters(self, block: BlockReference) -> dict[int, int]:
        return {
            originator_id: require_counter(self._endpoint, counter, block)
            for originator_id, counter in self._deployment.counters.items()
        }

    def _numbers(
        self, to_block: int, counted: Mapping[int, Counted], kept: KeptRanges
    ) -> dict[int, int]:
        """Return the last sequence id of each originator in the ranges that are kept."""
        after = {key: each.after for key, each in counted.items()}
        known = {key: number for key, number in after.items() if number is not None}
        if to_block == self._last.number and known.keys() == self._payload_logs.counted:
            return known
        return self._before | kept.last_sequence_ids(self._payload_logs)

    def fetch(self, size: int, parallel: int, progress: ProgressCallback) -> int:
        """Fetch, write and publish the ranges that are not there yet; return how many blocks."""
        first = self._last.number + 1
        ranges = list(ranges_of(first, self._end.number, size))
        blocks = self._end.number - self._last.number
        blocks_of = BlockReader(self._endpoint, self._deployment.chain_id)
        reader = ChunkReader(blocks_of, self._payload_logs, self._endpoint.name)
        tasks = (numbers for each in ranges for numbers in _chunks_of(each))
        with closing(worked_in_order(reader.read, tasks, parallel)) as chunks:
            for each in ranges:
                with RangeFiles(self._folder, self._directory, each) as files:
                    for _ in _chunks_of(each):
                        chunk = next(chunks)
                        self._take(chunk)
                        files.append(chunk)
                        progress(chunk.blocks, blocks)
                    written = files.finish()
                self._publish(written)
        if not ranges:
            self._publish({})
        return blocks

    def _take(self, chunk: Chunk) -> None:
        check_link(self._endpoint.name, self._last, chunk.parent_hash)
        self._sequence.add(chunk.payload_logs)
        self._last = chunk.end

    def _publish(self, written: Mapping[str, Mapping[str, Any]]) -> None:
        is_end = self._last.number == self._end.number
        numbers = self._after if is_end else self._counters_here()
        if is_end:
            self._check_pinned()
        self._sequence.finish(numbers, self._last)
        self._files = {**self._files, **written}
        manifest = Manifest(
            files=self._files,
            to_block=self._last.number,
            to_block_hash=hex0x(self._last.hash),
            **self._about,
            **self._deployment.about_counters(self._before, numbers),
        )
        self._folder.publish(manifest)

    def _counters_here(self) -> dict[int, int | None]:
        return {
            originator_id: read_counter(self._endpoint, counter, self._last)
            for originator_id, counter in self._deployment.counters.items()
        }

    def _check_pinned(self) -> None:
        """Check that the pinned block was the one that was read, and is still on the chain."""
        if self._last.hash != self._end.hash:
            raise changed(self._endpoint.name, self._end, self._last.hash)
        now = self._endpoint.find_header(self._end.number)
        if now is None or now.hash != self._end.hash:
            raise changed(self._endpoint.name, self._end, now.hash if now else None)


def _chunks_of(blocks: BlockRange) -> Iterator[Sequence[int]]:
    for start in range(blocks.first, blocks.last + 1, CHUNK_BLOCKS):
        yield range(start, min(start + CHUNK_BLOCKS, blocks.last + 1))
