"""A chain with every kind of transaction, and changes to its rows that a proof must notice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from support.audit.audit_exports import Row
from support.chains.proved_chain import (
    Emitted,
    ProvedChain,
    every_kind,
    number_column,
    proved_chain,
)

FIRST, LAST = 1, 6
KINDS = 3
"""The block with every kind of transaction; in the next are a rollup's."""

Rows = dict[str, list[Row]]


@cache
def every_kind_chain() -> ProvedChain:
    return proved_chain(every_kind(KINDS), FIRST, LAST)


def chain() -> ProvedChain:
    """A chain of one's own, to be changed."""
    return ProvedChain(copy.deepcopy(every_kind_chain().rows), {})


def row_of(rows: Rows, table: str, number: int, position: int = 0) -> Row:
    return [row for row in rows[table] if row[number_column(table)] == number][position]


def flipped(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


def change(table: str, number: int, position: int, **columns: Any) -> Callable[[Rows], None]:
    """Set columns of a row; a function makes the new value of the old one."""

    def apply(rows: Rows) -> None:
        row = row_of(rows, table, number, position)
        for name, value in columns.items():
            row[name] = value(row[name]) if callable(value) else value

    return apply


def remove(table: str, number: int, position: int) -> Callable[[Rows], None]:
    return lambda rows: rows[table].remove(row_of(rows, table, number, position))


def repeat(table: str, number: int, position: int) -> Callable[[Rows], None]:
    return lambda rows: rows[table].append(dict(row_of(rows, table, number, position)))


def remove_blocks(*numbers: int) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        for table, held in rows.items():
            held[:] = [row for row in held if row[number_column(table)] not in numbers]

    return apply


def swap_logs(rows: Rows) -> None:
    """Swap the last log of one transaction and the first of the next: both keep their places."""
    first, second = (row_of(rows, "logs", KINDS, position) for position in (1, 2))
    first["log_index"], second["log_index"] = second["log_index"], first["log_index"]


def other_block(rows: Rows) -> None:
    """Replace a block by another valid block."""
    logs = (Emitted(data=b"another"),)
    sent = [replace(each, logs=logs) if each.logs else each for each in every_kind(KINDS)]
    before = every_kind_chain().hash_of(KINDS - 1)
    other = proved_chain(sent, KINDS, KINDS, before)
    remove_blocks(KINDS)(rows)
    for table, more in other.rows.items():
        rows[table] += more
