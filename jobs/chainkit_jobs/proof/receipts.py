"""Checks the receipts and logs of one block: their transactions, gas, and the root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from chainkit.errors import MalformedData, Unprovable
from chainkit.ethereum import bloom_of_logs, create_address, receipt_bytes
from chainkit.ethereum.transaction import COMMITTED_COLUMNS, OPTIMISM_DEPOSIT, SIGNED_COLUMNS
from chainkit.text.hexadecimal import hex0x
from chainkit_jobs.proof.collector import Collector, Row, type_words
from chainkit_jobs.proof.places import check_place, check_root, in_order
from chainkit_jobs.proof.result import GapCode, ProblemCode
from chainkit_jobs.proof.transactions import Transaction, Transactions

_TABLE: Final = "receipts"
_LAYER_1: Final = (
    *("l1_fee", "l1_gas_used", "l1_gas_price", "l1_fee_scalar", "l1_base_fee_scalar"),
    *("l1_blob_base_fee", "l1_blob_base_fee_scalar", "gas_used_for_l1"),
)
"""A rollup's fields about its fee to layer 1: no root of a block commits to them."""

_SUCCESS: Final = 1
_PRICE_OFFERED: Final = frozenset({0, 1})
"""Types whose paid price is the offered one; from EIP-1559 on it follows from the block's base
fee."""


def check_receipts(
    rows: Sequence[Row],
    log_rows: Sequence[Row],
    transactions: Transactions,
    header: Row,
    block_hash: bytes,
    found: Collector,
) -> bool:
    """Check the rows of a block; return whether they are those to which the header commits."""
    logs = in_order("logs", log_rows, found)
    logs_of = _check_logs(logs, transactions, block_hash, found)
    receipts = in_order(_TABLE, rows, found)
    before = len(found.problems)
    values = [_encoding(row, logs_of.get(row["transaction_index"], ()), found) for row in receipts]
    is_malformed = len(found.problems) > before
    has_root = check_root(_TABLE, values, header, is_malformed, found)
    if not is_malformed:
        _check_bloom(logs, header, found)
    _check_pairs(receipts, transactions, found)
    _check_gas(receipts, header, found)
    for row in receipts:
        check_place(_TABLE, row, block_hash, found)
        transaction = transactions.by_index.get(row["transaction_index"])
        if transaction is not None:
            _check_transaction(row, transaction, has_root, found)
            _check_contract(row, transaction, found)
            _check_price(row, transaction, header, found)
        for name in _LAYER_1:
            if row[name] is not None:
                found.gap(GapCode.COLUMN, _TABLE, name)
    return has_root


def _check_logs(
    logs: Sequence[Row], transactions: Transactions, block_hash: bytes, found: Collector
) -> Mapping[int, Sequence[Row]]:
    """Return the logs by the index of their transaction."""
    logs_of: dict[int, list[Row]] = {}
    last = 0
    for log in logs:
        check_place("logs", log, block_hash, found)
        place, index = log["log_index"], log["transaction_index"]
        transaction = transactions.by_index.get(index)
        column = "transaction_index"
        if transaction is None:
            words = ("a transaction of the block", index)
            found.problem(ProblemCode.ROW_UNEXPECTED, "logs", place, column, *words)
        else:
            got, name = log["transaction_hash"], "transaction_hash"
            code = ProblemCode.TRANSACTION_LINK
            found.require(code, "logs", place, name, transaction.hash, got)
        if index < last:
            found.problem(ProblemCode.LOG_ORDER, "logs", place, column, f"{last} or more", index)
        last = max(last, index)
        logs_of.setdefault(index, []).append(log)
    return logs_of


def _encoding(row: Row, logs: Sequence[Row], found: Collector) -> bytes | None:
    """Return the trie's value, or None where the row is incomplete, or malformed."""
    try:
        return receipt_bytes(row, logs)
    except Unprovable as error:
        found.untold(GapCode.RECEIPT, _TABLE, row, error)
    except MalformedData as error:
        found.malformed(_TABLE, row["transaction_index"], error)
    return None


def _check_bloom(logs: Sequence[Row], header: Row, found: Collector) -> None:
    """Report logs that the header's filter lacks: a root does not show which log is wrong."""
    committed = header["logs_bloom"]
    if committed is None or bloom_of_logs(logs) == committed:
        return
    bits = int.from_bytes(committed, "big")
    for log in logs:
        values = {"address": [log["address"]], "topics": log["topics"]}
        for column, held in values.items():
            filter_ = bloom_of_logs([{"address": value, "topics": ()} for value in held])
            if int.from_bytes(filter_, "big") & ~bits:
                words = ("what the header's filter holds", ", ".join(map(hex0x, held)))
                code = ProblemCode.LOGS_BLOOM
                found.problem(code, "logs", log["log_index"], column, *words)
    code, got = ProblemCode.LOGS_BLOOM, bloom_of_logs(logs)
    found.problem(code, "logs", None, None, committed, got)


def _check_pairs(receipts: Sequence[Row], transactions: Transactions, found: Collector) -> None:
    """Report transactions without receipt, and receipts without transaction."""
    held = {row["transaction_index"] for row in receipts}
    for index in sorted(held - transactions.by_index.keys()):
        words = ("a transaction of the block", index)
        code, column = ProblemCode.ROW_UNEXPECTED, "transaction_index"
        found.problem(code, _TABLE, index, column, *words)
    # A receipt missing before the last was reported when the places were counted.
    missing = sorted(transactions.by_index.keys() - held)
    if missing and missing[-1] > max(held, default=-1):
        first = max(held, default=-1) + 1
        words = (f"receipts up to transaction {missing[-1]}", "none")
        found.problem(ProblemCode.ROW_MISSING, _TABLE, first, None, *words)


def _check_gas(receipts: Sequence[Row], header: Row, found: Collector) -> None:
    """Check the gas used, which no receipt contains: it is the growth of the cumulative gas."""
    cumulative = {row["transaction_index"]: row["cumulative_gas_used"] for row in receipts}
    cumulative[-1] = 0
    code = ProblemCode.GAS_USED
    for row in receipts:
        index = row["transaction_index"]
        before = cumulative.get(index - 1)
        if before is not None:
            grown = row["cumulative_gas_used"] - before
            found.require(code, _TABLE, index, "gas_used", grown, row["gas_used"])
    # Since Amsterdam a block counts its gas in another way than its receipts (EIP-7778, EIP-8037).
    # A header without a field that every header has, as in an import, does not show its hard fork.
    if receipts and header["mix_hash"] is not None and header["block_access_list_hash"] is None:
        last, column = receipts[-1], "cumulative_gas_used"
        index = last["transaction_index"]
        found.require(code, _TABLE, index, column, header["gas_used"], last[column])


def _check_transaction(
    row: Row, transaction: Transaction, has_root: bool, found: Collector
) -> None:
    index = row["transaction_index"]
    demanded: dict[str, Any] = {
        "transaction_hash": transaction.hash,
        "type": transaction.row["type"],
        "from_address": transaction.sender,
        "to_address": transaction.row["to_address"],
    }
    for column, value in demanded.items():
        found.require(ProblemCode.TRANSACTION_LINK, _TABLE, index, column, value, row[column])
    if row["type"] == OPTIMISM_DEPOSIT:
        _check_deposit_nonce(row, transaction.row["nonce"], has_root, found)


def _check_deposit_nonce(row: Row, said: int, has_root: bool, found: Collector) -> None:
    """Compare a deposit with the nonce in its receipt, to which the root commits since Canyon."""
    nonce, is_committed = row["deposit_nonce"], row["deposit_receipt_version"] is not None
    if nonce is not None and not is_committed:
        found.gap(GapCode.COLUMN, _TABLE, "deposit_nonce")
    # Endpoints may leave the nonce out of the transaction itself, which reads as 0.
    if nonce is not None and said not in (0, nonce):
        place = (row["transaction_index"], "nonce")
        found.problem(ProblemCode.TRANSACTION_LINK, "transactions", *place, nonce, said)
    elif said != nonce or not (is_committed and has_root):
        found.gap(GapCode.COLUMN, "transactions", "nonce", type_words(row["type"]))


def _check_contract(row: Row, transaction: Transaction, found: Collector) -> None:
    index, column = row["transaction_index"], "contract_address"
    code, said = ProblemCode.CONTRACT_ADDRESS, row["contract_address"]
    if not transaction.is_encoded:
        if said is not None:
            found.gap(GapCode.COLUMN, _TABLE, column, type_words(row["type"]))
        return
    if transaction.row["to_address"] is not None:
        found.require(code, _TABLE, index, column, None, said)
        return
    nonce = _nonce(row, transaction.row)
    if nonce is None or nonce < 0:
        found.gap(GapCode.COLUMN, _TABLE, column, type_words(row["type"]))
    elif said is not None or row["status"] == _SUCCESS:
        # Some endpoints return the address that a failed creation would have had.
        found.require(code, _TABLE, index, column, create_address(transaction.sender, nonce), said)


def _nonce(receipt: Row, transaction: Row) -> Any:
    """Return the nonce that gives a contract's address, None where no column has it."""
    type_ = transaction["type"]
    if type_ == OPTIMISM_DEPOSIT:
        return receipt["deposit_nonce"]
    is_told = "nonce" in COMMITTED_COLUMNS.get(type_, ("nonce",))
    return transaction["nonce"] if is_told else None


def _check_price(row: Row, transaction: Transaction, header: Row, found: Collector) -> None:
    column = "effective_gas_price"
    price = _price(row, transaction.row, header)
    if price is None:
        found.gap(GapCode.COLUMN, _TABLE, column, type_words(row["type"]))
        return
    index = row["transaction_index"]
    found.require(ProblemCode.GAS_PRICE, _TABLE, index, column, price, row[column])


def _price(receipt: Row, transaction: Row, header: Row) -> Any:
    """Return the price by the type's rule, None where no rule is known or a value is missing."""
    type_ = transaction["type"]
    if receipt["gas_used_for_l1"] is not None:
        return None  # Arbitrum has rules of its own for the rest of a tip
    if type_ in _PRICE_OFFERED:
        return transaction["gas_price"]
    if type_ == OPTIMISM_DEPOSIT:
        return 0  # its gas was paid for on layer 1
    terms = (
        *(header["base_fee_per_gas"], transaction["max_fee_per_gas"]),
        transaction["max_priority_fee_per_gas"],
    )
    if type_ not in SIGNED_COLUMNS or None in terms:
        return None
    base_fee, most, tip = terms
    return min(most, base_fee + tip)
