"""Checks one block: do its rows follow from the hash that the next block names?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import header_bytes
from chainkit.exports.tables import CHAIN_TABLES
from chainkit.signatures import keccak256
from chainkit_jobs.proof.collector import Collector, Row
from chainkit_jobs.proof.receipts import check_receipts
from chainkit_jobs.proof.result import MANIFEST_TABLE, Counts, GapCode, ProblemCode
from chainkit_jobs.proof.transactions import check_transactions

_REQUIRED: Final = {
    table: tuple(field.name for field in schema if not field.nullable)
    for table, schema in CHAIN_TABLES.items()
}

_EMPTY_CONTENT: Final = {
    # keccak256 of the RLP of no uncles, root of an empty trie, sha256 of no requests.
    "sha3_uncles": "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
    "withdrawals_root": "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
    "requests_hash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}
"""Columns of a header that commit to data outside an export, with their values for no such data."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The manifest's statements about the chain."""

    chain_id: int
    genesis_hash: bytes
    from_block: int
    to_block: int


@dataclass(frozen=True, slots=True)
class BlockRows:
    """All rows of one height, in any order."""

    number: int | None
    demanded: Sequence[bytes]
    """The parent that the header of the next height names, or the trusted hash."""
    blocks: Sequence[Row]
    transactions: Sequence[Row]
    receipts: Sequence[Row]
    logs: Sequence[Row]

    @property
    def tables(self) -> tuple[tuple[str, Sequence[Row]], ...]:
        """The tables, by name."""
        names = ("blocks", "transactions", "receipts", "logs")
        return tuple((name, getattr(self, name)) for name in names)


def check_block(rows: BlockRows, claims: Claims) -> Collector:
    """Return everything that is wrong, proved or unprovable in the rows of a block.

    Rows may come from a stranger: no content of a row raises an error.
    """
    found = Collector(rows.number)
    if _has_wrong_place(rows, claims, found):
        return found
    if not rows.blocks:
        found.is_broken = True
        found.problem(ProblemCode.BLOCK_MISSING, "blocks", None, None, "a header", "none")
        return found
    has_nulls = _find_nulls(rows, found)
    header = _the_header(rows, found)
    if any(header[name] is None for name in _REQUIRED["blocks"]):
        found.is_broken = True
        return found
    block_hash = _check_header(header, rows, claims, found)
    if has_nulls:
        return found
    transactions = check_transactions(rows.transactions, header, block_hash, claims.chain_id, found)
    has_root = check_receipts(rows.receipts, rows.logs, transactions, header, block_hash, found)
    found.proved = Counts(
        1,
        len(rows.transactions) if transactions.has_root else 0,
        len(rows.receipts) if has_root else 0,
        len(rows.logs) if has_root else 0,
    )
    return found


def _has_wrong_place(rows: BlockRows, claims: Claims, found: Collector) -> bool:
    """Report rows without a height, or outside of the manifest's range."""
    number = rows.number
    if number is not None and claims.from_block <= number <= claims.to_block:
        return False
    for table, each in rows.tables:
        if not each:
            continue
        if number is None:
            column = "number" if table == "blocks" else "block_number"
            words = ("a height", f"null in {len(each)} rows")
            found.problem(ProblemCode.ROW_MALFORMED, table, None, column, *words)
        else:
            expected = f"blocks from {claims.from_block} to {claims.to_block}"
            got = f"{len(each)} rows"
            found.problem(ProblemCode.BLOCK_OUTSIDE, table, None, None, expected, got)
    return True


def _find_nulls(rows: BlockRows, found: Collector) -> bool:
    """Report nulls in required columns: Parquet may hold them all the same."""
    before = len(found.problems)
    for table, each in rows.tables:
        place = {"logs": "log_index", "blocks": "number"}.get(table, "transaction_index")
        for row in each:
            names = [name for name in _REQUIRED[table] if row[name] is None]
            if table == "logs" and None in (row["topics"] or ()):
                names.append("topics")
            for name in names:
                position = None if table == "blocks" else row[place]
                words = ("a value", "null")
                found.problem(ProblemCode.ROW_MALFORMED, table, position, name, *words)
    return len(found.problems) > before


def _the_header(rows: BlockRows, found: Collector) -> Row:
    """Return the only header, or of several the demanded one, if it is among them."""
    if len(rows.blocks) > 1:
        found.is_broken = True
        got = f"{len(rows.blocks)} headers"
        found.problem(ProblemCode.BLOCK_REPEATED, "blocks", None, None, "1 header", got)
    return min(rows.blocks, key=lambda row: (row["hash"] not in rows.demanded, repr(row)))


def _check_header(header: Row, rows: BlockRows, claims: Claims, found: Collector) -> bytes:
    """Check the fields, the column ``hash`` and the link; return the block's hash.

    Where the three disagree, the hash of two of them counts: so one changed byte is one problem,
    and the other tables are compared with the most likely block.
    """
    column: bytes = header["hash"]
    fields = _hash_of_fields(header, found)
    demanded = column if column in rows.demanded else min(rows.demanded, default=None)
    said = [value for value in (column, fields, demanded) if value is not None]
    block_hash = max(said, key=said.count)
    if fields is not None and fields != block_hash:
        found.problem(ProblemCode.HEADER_HASH, "blocks", None, None, block_hash, fields)
    found.require(ProblemCode.HEADER_HASH, "blocks", None, "hash", block_hash, column)
    if demanded is not None and demanded != block_hash:
        is_last = rows.number == claims.to_block
        code = ProblemCode.TRUSTED_HASH if is_last else ProblemCode.PARENT_LINK
        found.problem(code, "blocks", None, "hash", demanded, block_hash)
    if fields is None or set(rows.demanded) != {fields}:
        found.is_broken = True
    if rows.number == 0:
        code, genesis = ProblemCode.GENESIS_HASH, claims.genesis_hash
        found.require(code, MANIFEST_TABLE, None, "genesis_hash", block_hash, genesis)
    for name, empty in _EMPTY_CONTENT.items():
        if header[name] is not None and header[name] != bytes.fromhex(empty):
            found.gap(GapCode.CONTENT, "blocks", name)
    return block_hash


def _hash_of_fields(header: Row, found: Collector) -> bytes | None:
    try:
        return keccak256(header_bytes(header))
    except Unprovable as error:
        found.untold(GapCode.HEADER, "blocks", header, error)
    except MalformedData as error:
        found.malformed("blocks", None, error)
    return None
