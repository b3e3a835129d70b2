"""The inputs of an audit: exports of one network, opened, and their files proved.

A fault of one node's export concerns that node: it is reported, and the others are compared. A
fault of the chain export, or of the auditor's request, ends the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from chainkit.errors import ConfigurationError, StoreError
from chainkit.exports import one_line
from chainkit.text.printable import printable
from chainkit_jobs.sources import (
    Export,
    check_same_network,
    open_export,
    payload_contracts,
    prove_export,
)

NamedExport = tuple[int | None, Export]
"""A node's export with the id that the auditor gave, or None where the export's key shows it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An export of no node, or with an unreadable manifest: it is not compared."""

    folder: str
    """The folder as given, printable."""
    node_id: int | None
    """The id that the auditor gave with the folder."""
    reason: str
    """A printable sentence; two exports of which one is the node's share it."""


def shown_folder(directory: Path) -> str:
    """Return a folder's name as given, printable: the name may come from a stranger."""
    return printable(str(directory))


@dataclass(frozen=True, slots=True)
class Inputs:
    """A chain export, and the exports of nodes."""

    chain: Export
    nodes: tuple[NamedExport, ...]
    """All whose manifest can be read."""
    refused: tuple[Refused, ...] = ()
    """The exports whose manifest cannot be read."""
    faults: Mapping[Path, str] = field(default_factory=dict)
    """Folder of an export among ``nodes`` to the reason why it cannot be used."""

    @property
    def are_sound(self) -> bool:
        """Whether no node's export has a fault."""
        return not self.refused and not self.faults


def open_inputs(chain_directory: Path, nodes: Sequence[tuple[int | None, Path]]) -> Inputs:
    """Open a chain export and the exports of some nodes, without Spark; see ``proving``.

    ``nodes`` are pairs of node id (None: found by its key) and folder. Raises StoreError where the
    chain's folder is no chain export, and StoreError or ConfigurationError where the folders or ids
    of ``nodes`` are impossible.
    """
    _check_arguments(nodes)
    chain = open_export(chain_directory, "chain")
    first, last = chain.manifest.from_block, chain.manifest.to_block
    if first > last:
        expected = f"a first block up to its last, {last}"
        raise StoreError(f"export {chain_directory}", expected, first)
    payload_contracts(chain)
    opened, refused, faults = [], [], {}
    for node_id, directory in nodes:
        try:
            export = open_export(directory, "node")
        except StoreError as error:
            reason = _sentence(node_id, error)
            refused.append(Refused(shown_folder(directory), node_id, reason))
            continue
        opened.append((node_id, export))
        try:
            check_same_network(chain, [export])
        except StoreError as error:
            faults[directory] = one_line(error)
    _check_ids(opened)
    return Inputs(chain, tuple(opened), tuple(refused), faults)


def _check_arguments(nodes: Sequence[tuple[int | None, Path]]) -> None:
    for _, directory in nodes:
        if not directory.is_dir():
            got = "a file" if directory.exists() else "none"
            raise StoreError(f"export {directory}", "a folder with manifest.json", got)
    for folder, times in Counter(directory.resolve() for _, directory in nodes).items():
        if times > 1:
            raise ConfigurationError(f"export {folder}", "each export once", f"{times} times")


def _check_ids(opened: Sequence[NamedExport]) -> None:
    """An operator exports one database; a node can be asked any number of times."""
    written = (each for each, export in opened if not export.manifest.is_of_answers)
    for node_id, times in Counter(written).items():
        if node_id is not None and times > 1:
            raise ConfigurationError(f"node {node_id}", "one export by its operator", times)


def _sentence(node_id: int | None, error: StoreError) -> str:
    subject = "" if node_id is None else f"node {node_id}: "
    return subject + one_line(error)


@contextmanager
def proving(inputs: Inputs, threads: int | None = None) -> Iterator[Callable[[], Inputs]]:
    """Prove the files of all exports in parallel with the caller's work.

    Call the yielded function before any file is trusted: it waits, and returns the inputs with the
    faults of all nodes' files. It raises StoreError where the chain export was changed after it was
    written. Without ``threads`` there are as many as cores.
    """
    abandoned = Event()

    def report(more: int) -> None:
        if abandoned.is_set():
            raise CancelledError

    def prove() -> Inputs:
        prove_export(inputs.chain, report, threads)
        faults = dict(inputs.faults)
        for _, export in inputs.nodes:
            if export.directory in faults:
                continue
            try:
                prove_export(export, report, threads)
            except StoreError as error:
                faults[export.directory] = one_line(error)
        return replace(inputs, faults=faults)

    with ThreadPoolExecutor(1) as pool:
        proof = pool.submit(prove)
        try:
            yield proof.result
        finally:
            # A caller that leaves early does not wait for the rest.
            abandoned.set()
