"""The tables in docs/, for the tests that check them."""

from __future__ import annotations

from support.project import DOCS


def rows_of_table(document: str, first_columns: list[str]) -> list[dict[str, str]]:
    """The rows, by column, of the one table in docs/``document`` that begins with these columns."""
    lines = [_cells(line) for line in (DOCS / document).read_text().splitlines()]
    (start,) = [
        index for index, cells in enumerate(lines) if cells[: len(first_columns)] == first_columns
    ]
    columns, rows = lines[start], []
    for cells in lines[start + 2 :]:
        if len(cells) != len(columns):
            break
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
