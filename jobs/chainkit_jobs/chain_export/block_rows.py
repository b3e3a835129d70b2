"""One block of JSON-RPC as rows of the canonical tables, proved to be consistent in itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from chainkit.chain.block_encoding import encode_transaction
from chainkit.chain.completion import Completed, completed_receipt, completed_transaction
from chainkit.errors import Unprovable
from chainkit.ethereum.transaction import FOREIGN_COLUMNS, OPTIMISM_DEPOSIT
from chainkit.signatures import keccak256
from chainkit_jobs.chain_export.columns import BLOCKS, LOGS, PLACE, RECEIPTS, TRANSACTIONS
from chainkit_jobs.chain_export.json_rows import AnswerPart, Row

_FOREIGN_COLUMNS: Final = {
    # No hash commits to the chain of a deposit, and no signature.
    type_: (*names, "chain_id") if type_ == OPTIMISM_DEPOSIT else names
    for type_, names in FOREIGN_COLUMNS.items()
}
"""Type to the columns that only other types have: endpoints fill them in, such as a signature of
zeros, or the paid price instead of the offered one."""


@dataclass(frozen=True, slots=True)
class Body:
    """A block and its transactions, as rows."""

    subject: str
    """For error messages: which block of which endpoint."""
    block: Row
    transactions: Sequence[Row]
    completed: Sequence[Completed]
    """The transactions as JSON, with what follows from what filled in."""


def parse_body(subject: str, number: int, chain_id: int, answer: Any) -> Body:
    """Build the rows of a block with whole transactions.

    Raises InconsistentAnswer where there is no block, a field is malformed, the block has another
    height than requested, or its transactions are not of this block in this order; Unconfirmed
    where a field is left out that a row must have.
    """
    place = AnswerPart(subject, "header")
    if answer is None:
        raise place.inconsistent("a block", "nothing")
    block = BLOCKS.read(answer, place)
    place.require("height", number, block["number"])
    answers = answer.get("transactions")
    if not isinstance(answers, list):
        raise place.inconsistent("a list of transactions", type(answers).__name__)
    parts = [AnswerPart(subject, f"transaction {index}") for index in range(len(answers))]
    completed = [
        part.read(lambda value: completed_transaction(value, chain_id), each)
        for part, each in zip(parts, answers, strict=True)
    ]
    transactions = [
        _transaction_row(block, each, index, part)
        for index, (part, each) in enumerate(zip(parts, completed, strict=True))
    ]
    block["transaction_count"] = len(transactions)
    return Body(subject, block, transactions, completed)


def parse_receipts(body: Body, answer: Any) -> tuple[list[Row], list[Row]]:
    """Build the rows of a block's receipts and logs.

    Raises InconsistentAnswer where the receipts are not those of the block's transactions, one for
    each, or the logs are not numbered consecutively.
    """
    place = AnswerPart(body.subject, "receipts")
    if not isinstance(answer, list):
        got = "nothing" if answer is None else type(answer).__name__
        raise place.inconsistent("a list of receipts", got)
    expected = len(body.transactions)
    if len(answer) != expected:
        raise place.inconsistent(f"{expected} receipts", len(answer))
    receipts: list[Row] = []
    logs: list[Row] = []
    for transaction, sent, each in zip(body.transactions, body.completed, answer, strict=True):
        place = AnswerPart(body.subject, f"receipt {len(receipts)}")
        completed = place.read(partial(completed_receipt, transaction=sent.answer), each)
        receipt = RECEIPTS.read(completed.answer, place)
        _require_place(place, transaction, receipt)
        place.require("type", transaction["type"], receipt["type"])
        receipts.append(receipt)
        given = each.get("logs")
        if not isinstance(given, list):
            raise place.inconsistent("a list of logs", type(given).__name__)
        for log in given:
            logs.append(_log_row(body.subject, transaction, log, len(logs)))
    return receipts, logs


def _transaction_row(block: Row, completed: Completed, index: int, place: AnswerPart) -> Row:
    row = TRANSACTIONS.read(completed.answer, place)
    if completed.assumed:
        _check_assumed(row, completed, place)
    place.require("block number", block["number"], row["block_number"])
    place.require("block hash", block["hash"], row["block_hash"])
    place.require("transaction index", index, row["transaction_index"])
    for column in _FOREIGN_COLUMNS.get(row["type"], ()):
        row[column] = None
    return row


def _check_assumed(row: Row, completed: Completed, place: AnswerPart) -> None:
    """Raise Unconfirmed where a field that was left out is not what was assumed."""
    try:
        encoded = encode_transaction(completed.answer, place.part)
    except Unprovable:
        return  # The row has a null there, which `verify-chain` reports.
    if keccak256(encoded) != row["transaction_hash"]:
        raise place.left_out(", ".join(completed.assumed), "what the hash is made of")


def _log_row(subject: str, transaction: Row, answer: Any, index: int) -> Row:
    place = AnswerPart(subject, f"log {index}")
    row = LOGS.read(answer, place)
    _require_place(place, transaction, row)
    place.require("log index", index, row["log_index"])
    if answer.get("removed") not in (None, False):
        raise place.inconsistent("a log of this chain", "a removed one")
    return row


def _require_place(place: AnswerPart, transaction: Row, row: Row) -> None:
    for column in PLACE:
        what = column.replace("_", " ").replace("transaction hash", "transaction")
        place.require(what, transaction[column], row[column])
