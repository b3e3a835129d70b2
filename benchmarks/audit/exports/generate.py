"""Writes the exports, a range of blocks at a time, on all cores and in bounded memory."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks.audit.exports.administration import CONTRACTS
from benchmarks.audit.exports.batch import Batch, heads, make_batch
from benchmarks.audit.exports.chain_tables import SCHEMAS, administration_tables, chain_tables
from benchmarks.audit.exports.node_tables import (
    EXPECTED,
    envelope_table,
    expected_table,
    without_malformed,
)
from benchmarks.audit.exports.shape import FIRST_BLOCK, Blocks, Shape, hash_of, key_of
from chainkit.errors import StoreError
from chainkit.exports import (
    MANIFEST_NAME,
    Manifest,
    TableWriter,
    describe_file,
    manifest_text,
    tables,
)
from chainkit.signatures import keccak256

CHAIN: Final = "chain"
EXPECTED_FOLDER: Final = "expected"
"""Folder of the chain's demands, for engines that cannot build an envelope; it is no export."""

_CHAIN_ID: Final = 31337
_FEW_ROWS: Final = 10_000
"""Written before a process for them has started."""

Tables = Mapping[tuple[str, str], pa.Table]
"""By folder and name of the table."""

Edit = Callable[[Shape, Batch, Tables], Tables]
"""Changes what was made of a batch before it is written; it must survive the way to a process."""

_Files = dict[str, dict[str, dict[str, Any]]]
"""Folder, file name, and what a manifest says of the file."""


@dataclass(frozen=True, slots=True)
class Exports:
    """The exports of a shape, written to a folder."""

    directory: Path
    shape: Shape

    @property
    def chain(self) -> Path:
        """The chain's export."""
        return self.directory / CHAIN

    @property
    def nodes(self) -> dict[int, Path]:
        """The nodes' exports by node id."""
        return {node: self.directory / node_folder(node) for node in self.shape.node_ids}


@dataclass(frozen=True, slots=True)
class _Job:
    directory: Path
    shape: Shape
    blocks: Blocks
    edit: Edit | None
    has_expected: bool


def node_folder(node_id: int) -> str:
    """Return the name of a node's export."""
    return f"node-{node_id}"


def generate(
    directory: Path,
    shape: Shape,
    edit: Edit | None = None,
    has_expected: bool = False,
    written: Callable[[int], None] = lambda rows: None,
) -> Exports:
    """Write an export of the chain and one of each node; ``written`` is told of payloads.

    The same shape gives the same bytes. Raises StoreError where the folder exists.
    """
    if directory.exists():
        raise StoreError(f"folder {directory}", "one that does not exist yet", "one")
    files: _Files = {}
    jobs = [_Job(directory, shape, blocks, edit, has_expected) for blocks in shape.ranges()]
    folders = [CHAIN, *map(node_folder, shape.node_ids), *([EXPECTED_FOLDER] * has_expected)]
    for folder in folders:
        for table in SCHEMAS if folder == CHAIN else ("envelopes",):
            (directory / folder / table).mkdir(parents=True)
    for job, found in _written(jobs):
        for folder, about in found.items():
            files.setdefault(folder, {}).update(about)
        written(len(shape.sequences_of(job.blocks)))
    _write_manifest(directory / CHAIN, chain_manifest(shape, files[CHAIN]))
    for node_id in shape.node_ids:
        folder = node_folder(node_id)
        _write_manifest(directory / folder, _node_manifest(shape, node_id, files[folder]))
    return Exports(directory, shape)


def _written(jobs: list[_Job]) -> Iterator[tuple[_Job, _Files]]:
    workers = min(len(os.sched_getaffinity(0)), len(jobs))
    if workers < 2 or jobs[0].shape.rows < _FEW_ROWS:
        yield from ((job, _write_range(job)) for job in jobs)
        return
    # Not forked: threads of Arrow, or of whoever calls, would be cut in the middle.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(_write_range, job): job for job in jobs}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            # An interrupted run does not wait for jobs that have not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _write_range(job: _Job) -> _Files:
    writers: dict[tuple[str, str], TableWriter] = {}
    with ExitStack() as stack:
        for place, schema in _schemas(job).items():
            writers[place] = stack.enter_context(TableWriter(_path(job, place), schema))
        for blocks in job.shape.batches(job.blocks):
            for place, table in _tables(job, blocks).items():
                writers[place].append(table)
    files: _Files = {}
    for (folder, name), writer in writers.items():
        path = _path(job, (folder, name))
        about = describe_file(path, writer.rows)
        about |= {"from_block": job.blocks.first, "to_block": job.blocks.last, "finished": True}
        files.setdefault(folder, {})[f"{name}/{path.name}"] = about
    return files


def _schemas(job: _Job) -> dict[tuple[str, str], pa.Schema]:
    found = {(CHAIN, name): schema for name, schema in SCHEMAS.items()}
    found |= {
        (node_folder(node_id), "envelopes"): tables.ENVELOPES for node_id in job.shape.node_ids
    }
    return found | ({(EXPECTED_FOLDER, "envelopes"): EXPECTED} if job.has_expected else {})


def _path(job: _Job, place: tuple[str, str]) -> Path:
    folder, table = place
    return job.directory / folder / table / f"{job.blocks.name}.parquet"


def _tables(job: _Job, blocks: Blocks) -> Tables:
    shape = job.shape
    if blocks.last < shape.first_payload_block:
        made = administration_tables(shape, blocks)
        return {(CHAIN, name): table for name, table in made.items()}
    batch = make_batch(shape, blocks)
    parts = list(heads(batch))
    found = {(CHAIN, name): table for name, table in chain_tables(shape, batch).items()}
    for node_id in shape.node_ids:
        served = envelope_table(shape, batch, parts, node_id)
        found[node_folder(node_id), "envelopes"] = without_malformed(served, batch)
    if job.has_expected:
        found[EXPECTED_FOLDER, "envelopes"] = expected_table(batch, parts)
    return job.edit(shape, batch, found) if job.edit else found


def chain_manifest(
    shape: Shape, files: Mapping[str, Mapping[str, Any]], last_hash: bytes | None = None
) -> Manifest:
    """Return the manifest of a chain's export; ``last_hash`` is its last block's, if a real one."""
    return Manifest(
        kind="chain",
        files=files,
        first_block=FIRST_BLOCK,
        first_payload_block=FIRST_BLOCK,
        sequence_before=0,
        sequence_after=shape.rows,
        **_about(shape, last_hash or hash_of(shape.last_block)),
    )


def _node_manifest(shape: Shape, node_id: int, files: Mapping[str, Mapping[str, Any]]) -> Manifest:
    about = _about(shape, hash_of(shape.last_block))
    key = "0x" + key_of(node_id).public_key.hex()
    return Manifest(kind="node", files=files, node_public_key=key, last_reorg=0, **about)


def _about(shape: Shape, last_hash: bytes) -> dict[str, Any]:
    return {
        "chain_id": _CHAIN_ID,
        "genesis_hash": "0x" + keccak256(b"benchmark genesis").hex(),
        "contracts": {name: "0x" + address.hex() for name, address in CONTRACTS.items()},
        "from_block": FIRST_BLOCK,
        "to_block": shape.last_block,
        "to_block_hash": "0x" + last_hash.hex(),
        "range_blocks": shape.blocks_per_file,
    }


def _write_manifest(directory: Path, manifest: Manifest) -> None:
    (directory / MANIFEST_NAME).write_text(manifest_text(manifest))
