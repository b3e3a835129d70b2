"""Checks that a block's tables share: places that are numbered through, and a root."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from chainkit.ethereum import trie_root
from chainkit_jobs.proof.collector import Collector, Row
from chainkit_jobs.proof.result import GapCode, ProblemCode

PLACES: Final = {
    "transactions": "transaction_index",
    "receipts": "transaction_index",
    "logs": "log_index",
}
"""Table to the column that numbers its rows within a block, from 0."""

_ROOTS: Final = {
    "transactions": (ProblemCode.TRANSACTIONS_ROOT, GapCode.TRANSACTIONS_ROOT),
    "receipts": (ProblemCode.RECEIPTS_ROOT, GapCode.RECEIPTS_ROOT),
}


def in_order(table: str, rows: Iterable[Row], found: Collector) -> list[Row]:
    """Return rows by their place, one for each, and report places that are empty or taken twice.

    Rows at the same place are ordered by content: the same whatever the partitioning.
    """
    column = PLACES[table]
    by_place: dict[int, list[Row]] = {}
    for row in rows:
        by_place.setdefault(row[column], []).append(row)
    following = 0
    for place in sorted(by_place):
        if place > following:
            words = (f"a row with {column} {following}", f"{place} as the next")
            found.problem(ProblemCode.ROW_MISSING, table, following, None, *words)
        elif place < following:  # only below 0
            found.problem(ProblemCode.ROW_MALFORMED, table, place, column, "0 or more", place)
        if (count := len(by_place[place])) > 1:
            words = (f"one row with {column} {place}", f"{count} rows")
            found.problem(ProblemCode.ROW_REPEATED, table, place, None, *words)
        following = place + 1
    return [min(by_place[place], key=repr) for place in sorted(by_place)]


def check_place(table: str, row: Row, block_hash: bytes, found: Collector) -> None:
    """Compare a row with the block that it names."""
    place, column = row[PLACES[table]], "block_hash"
    found.require(ProblemCode.BLOCK_HASH, table, place, column, block_hash, row[column])


def check_root(
    table: str, values: Sequence[bytes | None], header: Row, is_malformed: bool, found: Collector
) -> bool:
    """Return whether the encoded rows of a table are those to which the header commits.

    ``values`` are None for rows that cannot be encoded, because they are malformed or incomplete.
    """
    column = f"{table}_root"
    problem, gap = _ROOTS[table]
    encoded = [value for value in values if value is not None]
    if is_malformed:
        return False
    if len(encoded) < len(values) or header[column] is None:
        if values:
            found.gap(gap, table, None, rows=len(values))
        return False
    return found.require(problem, table, None, None, header[column], trie_root(encoded))
