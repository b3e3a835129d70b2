"""The inputs of an audit: exports of one network, opened, and their files proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from chainkit.errors import StoreError
from chainkit_jobs.sources import Export, check_same_network, open_export, prove_export


@dataclass(frozen=True, slots=True)
class Inputs:
    """Exports of one network."""

    chain: Export
    nodes: tuple[tuple[int | None, Export], ...]
    """Each with its node's id, or None where its key tells it."""


def open_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open a chain export and the exports of some nodes, without Spark; see ``proving``.

    ``nodes`` are pairs of node id (None: found by its key) and folder. Raises StoreError where
    an export is none, or is of another chain or contracts.
    """
    chain = open_export(chain_directory, "chain")
    first, last = chain.manifest.from_block, chain.manifest.to_block
    if first > last:
        expected = f"a first block up to its last, {last}"
        raise StoreError(f"export {chain_directory}", expected, first)
    exports = [(node_id, open_export(directory, "node")) for node_id, directory in nodes]
    check_same_network(chain, [export for _, export in exports])
    return Inputs(chain, tuple(exports))


@contextmanager
def proving(inputs: Inputs, threads: int | None = None) -> Iterator[Callable[[], None]]:
    """Prove the files of all exports beside whatever is done meanwhile.

    Call what it gives before any file is believed: it waits, and raises StoreError where an export
    was changed after it was written. ``threads`` are as many as cores where none are named.
    """
    abandoned = Event()

    def report(more: int) -> None:
        if abandoned.is_set():
            raise CancelledError

    def prove() -> None:
        for export in (inputs.chain, *(export for _, export in inputs.nodes)):
            prove_export(export, report, threads)

    with ThreadPoolExecutor(1) as pool:
        proof = pool.submit(prove)
        try:
            yield proof.result
        finally:
            # A caller that leaves early does not wait for the rest.
            abandoned.set()


def read_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open exports as ``open_inputs`` does, and prove their files. Raises StoreError."""
    inputs = open_inputs(chain_directory, nodes)
    with proving(inputs) as proved:
        proved()
    return inputs
