"""The proof of a chain's rows without Spark: block by block, as in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chainkit.exports.tables import CHAIN_TABLES
from chainkit_jobs.proof.block import BlockRows, Claims, check_block
from chainkit_jobs.proof.collector import Collector
from chainkit_jobs.proof.result import Counts, Problem
from chainkit_jobs.proof.tally import Tally
from support.audit.audit_exports import GENESIS, Row
from support.chains.proved_chain import CHAIN_ID, ProvedChain, number_column


def claims_of(chain: ProvedChain, **about: Any) -> Claims:
    """The claims of an honest manifest; ``about`` overrides some."""
    claims = {
        "chain_id": CHAIN_ID,
        "genesis_hash": GENESIS,
        "from_block": chain.first_block,
        "to_block": chain.last_block,
    }
    return Claims(**claims | about)


def check_rows(
    rows: Mapping[str, Sequence[Row]], trusted_hash: bytes, claims: Claims
) -> dict[int | None, Collector]:
    """The findings in each block, by its number."""
    return {
        block.number: check_block(block, claims) for block in _blocks(rows, trusted_hash, claims)
    }


def tally_of(rows: Mapping[str, Sequence[Row]], trusted_hash: bytes, claims: Claims) -> Tally:
    tally = Tally()
    for block in _blocks(rows, trusted_hash, claims):
        held = Counts(*(len(each) for _, each in block.tables))
        tally.add_block(check_block(block, claims), held)
    return tally


def in_short(problems: Sequence[Problem]) -> list[tuple[str, int | None, str, int | None, Any]]:
    """Code, block, table, position and column."""
    return [(p.code, p.block_number, p.table, p.position, p.column) for p in problems]


def _blocks(
    rows: Mapping[str, Sequence[Row]], trusted_hash: bytes, claims: Claims
) -> Iterator[BlockRows]:
    first, last = claims.from_block, claims.to_block
    demanded: dict[int, set[bytes]] = {first: set(), last: {trusted_hash}}
    held: dict[int | None, dict[str, list[Row]]] = {}
    for table, each in rows.items():
        for row in each:
            number = row[number_column(table)]
            held.setdefault(number, {name: [] for name in CHAIN_TABLES})[table].append(row)
    for row in rows["blocks"]:
        number = row["number"]
        if number is not None and first < number <= last:
            demanded.setdefault(number - 1, set()).add(row["parent_hash"])
        if number is not None and first <= number < last:
            demanded.setdefault(number + 1, set())
    nothing: dict[str, list[Row]] = {name: [] for name in CHAIN_TABLES}
    numbers = held.keys() | demanded.keys()
    for number in sorted(numbers, key=lambda each: -1 if each is None else each):
        hashes = demanded.get(number, set()) if number is not None else set()
        hashes = {each for each in hashes if each is not None}
        yield BlockRows(number, tuple(sorted(hashes)), **held.get(number, nothing))
