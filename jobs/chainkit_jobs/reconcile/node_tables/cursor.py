"""NODE_CURSOR_CONTRADICTS: compares a manifest with itself, and with its own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow.parquet as pq

from chainkit.exports import PARQUET_ERRORS, Manifest, table_of
from chainkit_jobs.findings import Code
from chainkit_jobs.reconcile.comparability import NodeExport
from chainkit_jobs.reconcile.node_tables.rows import finding
from chainkit_jobs.sources import Export

_RANGED: Final = ("envelopes", "quarantine")
"""Tables whose rows are in the export's blocks; a journal is about blocks that are gone."""

Bounds = tuple[int, int]
Problem = tuple[str, str, str]
"""The kind of fault, the file or field, and the fault."""


def cursor_findings(node: NodeExport) -> list[dict[str, Any]]:
    """Return the impossible statements in the manifest of a node's export.

    Only the files' footers are read: the number of rows, and the lowest and highest values.
    """
    problems = [*_manifest_problems(node.manifest), *_file_problems(node.export)]
    # A fault of the program that wrote the files is in each file: it is reported once.
    files: dict[str, list[tuple[str, str]]] = {}
    for kind, name, problem in sorted(problems):
        files.setdefault(kind, []).append((name, problem))
    return [
        finding(Code.NODE_CURSOR_CONTRADICTS, node.node.node_id, _in_words(each))
        for each in files.values()
    ]


def _in_words(problems: Sequence[tuple[str, str]]) -> str:
    name, problem = problems[0]
    more = f" (the first of {len(problems)} files)" if len(problems) > 1 else ""
    return f"{name}: {problem}{more}"


def _manifest_problems(manifest: Manifest) -> Iterator[Problem]:
    final_block = manifest.final_block
    if final_block is None:
        return  # there is no statement that its ranges could contradict
    if final_block > manifest.to_block:
        expected = f"expected up to to_block, {manifest.to_block}, got {final_block}"
        yield "final block", "final_block", expected
    for name, file in manifest.files.items():
        if file.get("finished") and file.get("to_block", -1) > final_block:
            problem = f"finished up to block {file['to_block']}, with final_block {final_block}"
            yield "finished", name, problem


def _file_problems(export: Export) -> Iterator[Problem]:
    for name, about in export.manifest.files.items():
        try:
            with pq.ParquetFile(export.directory / name) as file:
                metadata = file.metadata
        except PARQUET_ERRORS:
            continue  # the table's own comparison reports that it is unreadable
        if metadata.num_rows != about["rows"]:
            listed = about["rows"]
            problem = f"expected {listed} rows, as its manifest says, got {metadata.num_rows}"
            yield "rows", name, problem
        if table_of(name) in _RANGED and (found := _range_problem(export, about, metadata)):
            yield "range", name, found
        if table_of(name) == "journal" and (found := _reorg_problem(export, metadata)):
            yield "reorg", name, found


def _range_problem(
    export: Export, about: Mapping[str, Any], metadata: pq.FileMetaData
) -> str | None:
    first = about.get("from_block", export.manifest.from_block)
    last = about.get("to_block", export.manifest.to_block)
    bounds = _bounds(metadata, "block_number")
    if bounds is None or first <= bounds[0] <= bounds[1] <= last:
        return None
    return f"expected rows of blocks {first} to {last}, got {bounds[0]} to {bounds[1]}"


def _reorg_problem(export: Export, metadata: pq.FileMetaData) -> str | None:
    bounds, last = _bounds(metadata, "reorg_id"), export.manifest.last_reorg
    if bounds is None or last is None or 1 <= bounds[0] <= bounds[1] <= last:
        return None
    return f"expected reorgs 1 to {last}, its last_reorg, got {bounds[0]} to {bounds[1]}"


def _bounds(metadata: pq.FileMetaData, column: str) -> Bounds | None:
    """Return the lowest and highest value of a column; None where the footer lacks them."""
    names = metadata.schema.names
    if column not in names:
        return None
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    found = [group.column(names.index(column)).statistics for group in groups if group.num_rows]
    if not found or not all(each is not None and each.has_min_max for each in found):
        return None
    lowest, highest = [each.min for each in found], [each.max for each in found]
    if not all(isinstance(value, int) for value in (*lowest, *highest)):
        return None  # a column of another type, which the table's own comparison reports
    return min(lowest), max(highest)
