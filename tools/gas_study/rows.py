"""The rows of the study, their file, and the differences between two sets of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chainkit.errors import ConfigurationError


@dataclass(frozen=True)
class Row:
    """One measured cell."""

    table: str
    """``published`` (XIP-49's own construction), ``messages`` or ``registry``."""
    case: str
    """The way to publish, or the registry's function."""
    size_bytes: int | None
    """Size of the message; None where there is none."""
    nodes: int | None
    """Nodes in the registry; None for a row about messages."""
    hardfork: str
    gas: int
    """``gasUsed`` of the receipt."""
    published_gas: int | None
    """XIP-49's figure for this cell, None where there is none."""
    floor_gas: int | None
    """The least that EIP-7623 charges for this calldata, None before Prague."""

    @property
    def key(self) -> tuple[str, str, int | None, int | None, str]:
        """The identity of the cell."""
        return self.table, self.case, self.size_bytes, self.nodes, self.hardfork

    @property
    def cell(self) -> str:
        """The name of the cell, for people."""
        size = "" if self.size_bytes is None else f", {self.size_bytes} bytes"
        nodes = "" if self.nodes is None else f", {self.nodes} nodes"
        return f"{self.case}{size}{nodes}, {self.hardfork} ({self.table})"

    @property
    def floor_binds(self) -> bool:
        """Whether the floor price is what was paid."""
        return self.gas == self.floor_gas


def rows_as_json(rows: Sequence[Row]) -> str:
    """Return the file's text: one row a line, so that a change shows as its lines."""
    lines = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    return f"[\n{lines}\n]\n"


def read_rows(path: Path) -> list[Row]:
    """Read the text of ``rows_as_json``. Raises ConfigurationError if it has another form."""
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return [Row(**entry) for entry in entries]
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(str(path), "the rows of the gas study", error) from error


def differences(expected: Iterable[Row], measured: Iterable[Row]) -> Iterator[str]:
    """Return for each cell that differs the expected and the found value."""
    before = {row.key: row for row in expected}
    after = {row.key: row for row in measured}
    for key, row in before.items():
        if key not in after:
            yield f"{row.cell}: expected {row.gas} gas, got no such cell"
        elif after[key] != row:
            yield f"{row.cell}: expected {_figures(row)}, got {_figures(after[key])}"
    for key, row in after.items():
        if key not in before:
            yield f"{row.cell}: expected no such cell, got {row.gas} gas"


def _figures(row: Row) -> str:
    published = "" if row.published_gas is None else f", published {row.published_gas}"
    floor = "" if row.floor_gas is None else f", floor {row.floor_gas}"
    return f"{row.gas} gas{published}{floor}"
