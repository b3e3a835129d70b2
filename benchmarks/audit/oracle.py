"""The counts that an audit must come to, by DuckDB over the same files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import duckdb

from benchmarks.audit.exports.generate import EXPECTED_FOLDER, Exports
from chainkit.exports import load_manifest

_SQL: Final = Path(__file__).with_suffix(".sql")

Counts = Mapping[str, int]
"""``expected``, ``matched``, and how many findings of each code."""


def count(exports: Exports) -> dict[int, Counts]:
    """Return the counts of each node.

    The exports must have been made with what the chain demands. Nothing is counted of signatures:
    SQL does not recover keys.
    """
    with duckdb.connect() as database:
        _load(database, exports)
        database.execute(_SQL.read_text())
        found = database.execute("SELECT * FROM counts ORDER BY node_id")
        names = [name for name, *_ in found.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return {row.pop("node_id"): {k: int(v or 0) for k, v in row.items()} for row in rows}


def _load(database: duckdb.DuckDBPyConnection, exports: Exports) -> None:
    expected = exports.directory / EXPECTED_FOLDER
    _view(database, "expected", _scan(expected / "envelopes"))
    _view(database, "logs", _scan(exports.chain / "logs"))
    served = [
        f"SELECT {node_id} AS node_id, sequence_id::HUGEINT AS claimed_sequence_id, envelope "
        f"FROM ({_scan(path)})"
        for node_id, path in exports.nodes.items()
    ]
    _view(database, "served", " UNION ALL ".join(served))
    database.execute(
        "CREATE TABLE nodes "
        "(node_id BIGINT, first_block BIGINT, last_block BIGINT, counter UBIGINT)"
    )
    database.executemany(
        "INSERT INTO nodes VALUES (?, ?, ?, ?)",
        [_bounds(exports, node_id, path) for node_id, path in exports.nodes.items()],
    )


def _bounds(exports: Exports, node_id: int, path: Path) -> list[Any]:
    manifest = load_manifest(path, "node")
    return [node_id, manifest.from_block, manifest.to_block, exports.shape.rows]


def _view(database: duckdb.DuckDBPyConnection, name: str, query: str) -> None:
    database.execute(f"CREATE VIEW {name} AS {query}")


def _scan(directory: Path) -> str:
    return f"SELECT * FROM read_parquet('{directory}/**/*.parquet')"
