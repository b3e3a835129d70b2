"""One block of JSON-RPC as rows of the canonical tables, proved to be consistent in itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chainkit_jobs.chain_export.columns import BLOCKS, LOGS, PLACE, RECEIPTS, TRANSACTIONS
from chainkit_jobs.chain_export.json_rows import AnswerPart, Row

_LEGACY: Final = 0
_DEPOSIT: Final = 0x7E

_SIGNATURE: Final = ("v", "r", "s")
_FEES: Final = ("max_fee_per_gas", "max_priority_fee_per_gas")
_ARBITRUM: Final = frozenset({"chain_id", "max_fee_per_gas"})
_OWN_COLUMNS: Final[Mapping[int, frozenset[str]]] = {
    _LEGACY: frozenset({"chain_id", "gas_price", *_SIGNATURE}),
    1: frozenset({"chain_id", "gas_price", "access_list", *_SIGNATURE}),
    2: frozenset({"chain_id", *_FEES, "access_list", *_SIGNATURE}),
    3: frozenset(
        {
            *("chain_id", *_FEES, "access_list", *_SIGNATURE),
            *("max_fee_per_blob_gas", "blob_versioned_hashes"),
        }
    ),
    4: frozenset({"chain_id", *_FEES, "access_list", *_SIGNATURE, "authorization_list"}),
    _DEPOSIT: frozenset({"source_hash", "mint", "is_system_transaction"}),
    # Arbitrum: deposit, unsigned, contract, retry, submit retryable, internal.
    **dict.fromkeys((0x64, 0x65, 0x66, 0x68, 0x69, 0x6A), _ARBITRUM),
}
"""Type to the columns that only some types have, as far as it has them: endpoints fill in others,
such as a signature of zeros, or the price that was paid where another was offered."""

_OF_SOME_TYPES: Final = frozenset[str]().union(*_OWN_COLUMNS.values())
_FOREIGN_COLUMNS: Final = {type_: _OF_SOME_TYPES - own for type_, own in _OWN_COLUMNS.items()}


@dataclass(frozen=True, slots=True)
class Body:
    """A block and its transactions, as rows."""

    subject: str
    """For error messages: which block of which endpoint."""
    block: Row
    transactions: Sequence[Row]


def parse_body(subject: str, number: int, answer: Any) -> Body:
    """Build the rows of a block with whole transactions.

    Raises InconsistentAnswer where there is none, a field is missing or malformed, or it is not
    of the height that was asked for, or its transactions not of that block in that order.
    """
    place = AnswerPart(subject, "header")
    if answer is None:
        raise place.inconsistent("a block", "nothing")
    block = BLOCKS.read(answer, place)
    place.require("height", number, block["number"])
    answers = answer.get("transactions")
    if not isinstance(answers, list):
        raise place.inconsistent("a list of transactions", type(answers).__name__)
    transactions = [
        _transaction_row(block, each, index, AnswerPart(subject, f"transaction {index}"))
        for index, each in enumerate(answers)
    ]
    block["transaction_count"] = len(transactions)
    return Body(subject, block, transactions)


def parse_receipts(body: Body, answer: Any) -> tuple[list[Row], list[Row]]:
    """Build the rows of a block's receipts and logs.

    Raises InconsistentAnswer where they are not those of its transactions, one for each, or the
    logs not numbered through.
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
    for transaction, each in zip(body.transactions, answer, strict=True):
        place = AnswerPart(body.subject, f"receipt {len(receipts)}")
        receipt = RECEIPTS.read(_with_type(each, transaction), place)
        _require_place(place, transaction, receipt)
        place.require("type", transaction["type"], receipt["type"])
        receipts.append(receipt)
        given = each.get("logs")
        if not isinstance(given, list):
            raise place.inconsistent("a list of logs", type(given).__name__)
        for log in given:
            logs.append(_log_row(body.subject, transaction, log, len(logs)))
    return receipts, logs


def _transaction_row(block: Row, answer: Any, index: int, place: AnswerPart) -> Row:
    row = TRANSACTIONS.read(_completed(answer), place)
    place.require("block number", block["number"], row["block_number"])
    place.require("block hash", block["hash"], row["block_hash"])
    place.require("transaction index", index, row["transaction_index"])
    for column in _FOREIGN_COLUMNS.get(row["type"], ()):
        row[column] = None
    return row


def _completed(answer: Any) -> Any:
    """Return a transaction with what absent fields mean, and with the parity that it may have."""
    if not isinstance(answer, dict):
        return answer
    type_ = answer.get("type")
    if type_ is None:
        return answer | {"type": hex(_LEGACY)}
    if type_ == hex(_DEPOSIT):
        # It has no nonce, and some endpoints leave out what is false.
        zeros = {"nonce": "0x0", "isSystemTx": False}
        return answer | {name: zero for name, zero in zeros.items() if answer.get(name) is None}
    if type_ != hex(_LEGACY) and answer.get("yParity") is not None:
        return answer | {"v": answer["yParity"]}
    return answer


def _with_type(receipt: Any, transaction: Row) -> Any:
    # The oldest endpoints do not tell it.
    if isinstance(receipt, dict) and receipt.get("type") is None:
        return receipt | {"type": hex(transaction["type"])}
    return receipt


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
