"""Lines in columns, as in the pages of commands: 100 characters at most."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from chainkit.terminal.facts import LINE_WIDTH

_WIDTH: Final = 13
"""Columns before a line's text."""
_GAP: Final = "  "


def section(title: str, values: Sequence[str]) -> list[str]:
    """Return values below each other, the first one behind a title; long ones are wrapped."""
    lines = [
        f"{'' if n == 0 else '  '}{line}"
        for value in values
        for n, line in enumerate(textwrap.wrap(value, LINE_WIDTH - _WIDTH - 2) or [""])
    ]
    return [f"{title if n == 0 else '':<{_WIDTH}}{line}" for n, line in enumerate(lines)]


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows in columns, with their heads above; numbers stand at the right.

    The last column takes the rest of the line's width.
    """
    table = [tuple(heads), *map(tuple, rows)]
    by_column = list(zip(*table, strict=True))
    widths = [max(map(len, column)) for column in by_column]
    widths[0] = max(widths[0], _WIDTH - len(_GAP))
    widths[-1] = max(min(widths[-1], LINE_WIDTH - sum(widths[:-1]) - len(_GAP) * len(widths)), 1)
    at_right = [all(map(_is_number, column[1:])) for column in by_column]
    return [
        _GAP.join(
            _cut(cell, width).rjust(width) if is_number else _cut(cell, width).ljust(width)
            for cell, width, is_number in zip(row, widths, at_right, strict=True)
        )
        for row in table
    ]


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: width - 1]}…"


def _is_number(cell: str) -> bool:
    return cell[:1].isdecimal() or cell in ("?", "-")
