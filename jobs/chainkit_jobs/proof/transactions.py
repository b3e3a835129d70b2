"""Checks the transactions of one block: encoded, hashed, and with their recovered signers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chainkit.errors import InvalidSignature, MalformedData, Unprovable
from chainkit.ethereum import recover_sender, transaction_bytes
from chainkit.ethereum.transaction import (
    COMMITTED_COLUMNS,
    FOREIGN_COLUMNS,
    LEGACY,
    OPTIMISM_DEPOSIT,
    TRANSACTION_TYPES,
    signed_chain_id,
)
from chainkit.signatures import keccak256
from chainkit_jobs.proof.collector import Collector, Row, type_words
from chainkit_jobs.proof.places import check_place, check_root, in_order
from chainkit_jobs.proof.result import GapCode, ProblemCode

_TABLE: Final = "transactions"
_UNCOMMITTED: Final = {
    type_: [
        name
        for name in ("nonce", "to_address", "value", "input", "gas_limit")
        # A deposit's nonce is in its receipt, and is compared with the receipt's.
        if name not in COMMITTED_COLUMNS[type_] and (name, type_) != ("nonce", OPTIMISM_DEPOSIT)
    ]
    for type_, each in TRANSACTION_TYPES.items()
    if not each.is_signed
}
"""Type to the columns that its rows have although no hash commits to them."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """The reference for the other tables."""

    row: Row
    hash: bytes
    """The hash of the fields if the root proves them, else the column's value."""
    sender: bytes
    """The signer where it can be recovered, else the column's value."""
    is_encoded: bool


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a block by their index."""

    by_index: Mapping[int, Transaction]
    has_root: bool
    """Whether the transactions are those to which the header commits."""


def check_transactions(
    rows: Sequence[Row], header: Row, block_hash: bytes, chain_id: int, found: Collector
) -> Transactions:
    """Check the rows of a block that has a hash; ``chain_id`` is the manifest's."""
    ordered = in_order(_TABLE, rows, found)
    if header["transaction_count"] is not None:
        code, column = ProblemCode.TRANSACTION_COUNT, "transaction_count"
        found.require(code, "blocks", None, column, len(rows), header[column])
    before = len(found.problems)
    values = [_encoding(row, found) for row in ordered]
    is_malformed = len(found.problems) > before and None in values
    has_root = check_root(_TABLE, values, header, is_malformed, found)
    by_index = {}
    for row, value in zip(ordered, values, strict=True):
        check_place(_TABLE, row, block_hash, found)
        index, column_hash = row["transaction_index"], row["transaction_hash"]
        fields_hash = column_hash if value is None else keccak256(value)
        code, column = ProblemCode.TRANSACTION_HASH, "transaction_hash"
        is_same = found.require(code, _TABLE, index, column, fields_hash, column_hash)
        is_true = value is not None and (has_root or is_same)
        _check_chain(row, chain_id, has_root, found)
        by_index[index] = Transaction(
            row,
            hash=fields_hash if has_root else column_hash,
            sender=_sender(row, is_true, has_root, found),
            is_encoded=value is not None,
        )
        for name in _UNCOMMITTED.get(row["type"], ()):
            if row[name] is not None:
                found.gap(GapCode.COLUMN, _TABLE, name, type_words(row["type"]))
    return Transactions(by_index, has_root)


def _encoding(row: Row, found: Collector) -> bytes | None:
    """Return the trie's value, or None where the row is incomplete, or malformed."""
    foreign = [name for name in FOREIGN_COLUMNS.get(row["type"], ()) if row[name] is not None]
    for name in foreign:
        words = (f"null for {type_words(row['type'])}", row[name])
        index = row["transaction_index"]
        found.problem(ProblemCode.ROW_MALFORMED, _TABLE, index, name, *words)
    # Left out: these columns are no part of the transaction, so that the others can still be
    # proved.
    own = {**row, **dict.fromkeys(foreign)}
    if row["type"] == LEGACY:
        own["chain_id"] = None
    try:
        return transaction_bytes(own)
    except Unprovable as error:
        found.untold(GapCode.TRANSACTION, _TABLE, row, error)
    except MalformedData as error:
        found.malformed(_TABLE, row["transaction_index"], error)
    return None


def _check_chain(row: Row, chain_id: int, has_root: bool, found: Collector) -> None:
    """Hold both the column and the signature to the manifest's chain."""
    signed = _signed_chain_id(row)
    if has_root and signed is not None:
        found.chain_ids += 1
    wrong = [said for said in (row["chain_id"], signed) if said not in (None, chain_id)]
    for said in dict.fromkeys(wrong):
        index = row["transaction_index"]
        found.problem(ProblemCode.CHAIN_ID, _TABLE, index, "chain_id", chain_id, said)


def _signed_chain_id(row: Row) -> int | None:
    if row["type"] != LEGACY:
        is_signed = "chain_id" in COMMITTED_COLUMNS.get(row["type"], ())
        return row["chain_id"] if is_signed else None
    try:
        return signed_chain_id(row)
    except MalformedData:
        return None


def _sender(row: Row, is_true: bool, has_root: bool, found: Collector) -> bytes:
    """Return the sender of a transaction with true fields; other rows have no valid signature."""
    said: bytes = row["from_address"]
    index = row["transaction_index"]
    if not is_true:
        return said
    try:
        sender = recover_sender(row)
    except InvalidSignature as error:
        if has_root:
            # A chain accepted it: before Homestead S could be high, and test chains impersonate.
            found.gap(GapCode.COLUMN, _TABLE, "from_address", "a signature that names nobody")
        else:
            words = (error.expected, error.got)
            found.problem(ProblemCode.SENDER, _TABLE, index, "from_address", *words)
        return said
    except MalformedData as error:
        found.malformed(_TABLE, index, error)
        return said
    found.require(ProblemCode.SENDER, _TABLE, index, "from_address", sender, said)
    return sender
