"""From the columns of the ethereum-etl family to canonical rows.

Its three formats name their columns alike. The formats write cells differently: a number is text,
an integer or a decimal, a time is seconds, text or a timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from chainkit.ethereum.transaction import TRANSACTION_TYPES, types_with
from chainkit.exports import tables
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH
from chainkit_jobs.adapters.adapter import SourceTables
from chainkit_jobs.adapters.cells import (
    NO_FAULT,
    Cell,
    canonical_rows,
    fault,
    hex_text,
    literal,
    missing,
    number_text,
    quoted,
    unknown,
    where,
    whole_number,
)
from chainkit_jobs.adapters.etl_layout import CORRUPT, FILE
from chainkit_jobs.adapters.faults import FaultCode

_BLOOM_LENGTH: Final = 256
_NONCE_LENGTH: Final = 8

_PRICED_TYPES: Final = types_with("gas_price")
_BLOB_TYPES: Final = types_with("max_fee_per_blob_gas")
_KNOWN_TYPES: Final = tuple(TRANSACTION_TYPES)


def block_rows(frame: DataFrame) -> DataFrame:
    """Return canonical blocks."""
    cells = {
        "number": number(frame, "number", pa.int64()),
        "hash": hex_text("hash", HASH_LENGTH),
        "parent_hash": hex_text("parent_hash", HASH_LENGTH),
        "sha3_uncles": hex_text("sha3_uncles", HASH_LENGTH),
        "miner": hex_text("miner", ADDRESS_LENGTH),
        "state_root": hex_text("state_root", HASH_LENGTH),
        "transactions_root": hex_text("transactions_root", HASH_LENGTH),
        "receipts_root": hex_text("receipts_root", HASH_LENGTH),
        "logs_bloom": hex_text("logs_bloom", _BLOOM_LENGTH),
        "difficulty": number(frame, "difficulty", tables.WEI, required=False),
        "gas_limit": number(frame, "gas_limit", pa.int64()),
        "gas_used": number(frame, "gas_used", pa.int64()),
        "timestamp": seconds(frame, "timestamp"),
        "extra_data": hex_text("extra_data"),
        "nonce": hex_text("nonce", _NONCE_LENGTH),
        "base_fee_per_gas": number(frame, "base_fee_per_gas", tables.WEI, required=False),
        "withdrawals_root": hex_text("withdrawals_root", HASH_LENGTH, required=False),
        "blob_gas_used": number(frame, "blob_gas_used", pa.int64(), required=False),
        "excess_blob_gas": number(frame, "excess_blob_gas", pa.int64(), required=False),
        "transaction_count": number(frame, "transaction_count", pa.int64()),
    }
    return canonical_rows(frame, "blocks", cells, quoted(FILE), _corrupt())


def transaction_rows(frame: DataFrame, *receipt_faults: str) -> DataFrame:
    """Return canonical transactions; a fault of the row's receipt is one of the row."""
    cells = _place(frame, "hash") | {
        "type": _type(frame),
        "nonce": number(frame, "nonce", tables.UINT64),
        "from_address": hex_text("from_address", ADDRESS_LENGTH),
        "to_address": hex_text("to_address", ADDRESS_LENGTH, required=False),
        "value": number(frame, "value", tables.WEI),
        "input": hex_text("input"),
        "gas_limit": number(frame, "gas", pa.int64()),
        # For a type with fees of its own, this is the paid price; a fee that a type lacks may be
        # filled in with a zero.
        "gas_price": _fee(frame, "gas_price", *_PRICED_TYPES),
        "max_fee_per_gas": _fee(frame, "max_fee_per_gas", *types_with("max_fee_per_gas")),
        "max_priority_fee_per_gas": _fee(
            frame, "max_priority_fee_per_gas", *types_with("max_priority_fee_per_gas")
        ),
        "max_fee_per_blob_gas": _fee(frame, "max_fee_per_blob_gas", *_BLOB_TYPES),
        "blob_versioned_hashes": where(
            _has_type(*_BLOB_TYPES), hashes("blob_versioned_hashes", required=False)
        ),
    }
    return canonical_rows(frame, "transactions", cells, quoted(FILE), _corrupt(), *receipt_faults)


def receipt_cells(frame: DataFrame, transaction_hash: str, prefix: str) -> dict[str, Cell]:
    """Return the cells of a receipt in rows that also contain its transaction.

    ``transaction_hash`` is the name of that column, ``prefix`` precedes RECEIPT_PARTS.
    """
    price, paid = _fee(frame, "gas_price", *_PRICED_TYPES), f"{prefix}effective_gas_price"
    is_offer = f"({quoted(paid)} is null and {price.value} is not null)"
    paid_price = number(frame, paid, tables.WEI)
    cells = {
        "type": _type(frame),
        "status": number(frame, f"{prefix}status", pa.int64()),
        "from_address": hex_text("from_address", ADDRESS_LENGTH),
        "to_address": hex_text("to_address", ADDRESS_LENGTH, required=False),
        "contract_address": hex_text(f"{prefix}contract_address", ADDRESS_LENGTH, required=False),
        "gas_used": number(frame, f"{prefix}gas_used", pa.int64()),
        "cumulative_gas_used": number(frame, f"{prefix}cumulative_gas_used", pa.int64()),
        # Before London nodes left it out: the offered price is the paid one.
        "effective_gas_price": Cell(
            f"case when {is_offer} then {price.value} else {paid_price.value} end",
            f"case when not {is_offer} then {paid_price.fault} end",
        ),
    }
    for name in ("l1_fee", "l1_gas_used", "l1_gas_price"):
        cells[name] = number(frame, f"{prefix}{name}", tables.WEI, required=False)
    return _place(frame, transaction_hash) | cells


def receipt_rows(frame: DataFrame, cells: Mapping[str, Cell], *row_faults: str) -> DataFrame:
    """Return canonical receipts."""
    return canonical_rows(frame, "receipts", cells, quoted(FILE), _corrupt(), *row_faults)


def tables_with_receipts(
    blocks: DataFrame, transactions: DataFrame, logs: DataFrame
) -> SourceTables:
    """Return canonical tables where ``transactions`` have the columns WITH_RECEIPTS.

    A fault of a receipt is reported for its transaction.
    """
    cells = receipt_cells(transactions, "hash", "receipt_")
    faults = [cell.fault for cell in cells.values()]
    return SourceTables(
        blocks=block_rows(blocks),
        transactions=transaction_rows(transactions, *faults),
        receipts=receipt_rows(transactions, cells),
        logs=log_rows(logs),
        receipts_are_derived=True,
    )


def log_rows(frame: DataFrame) -> DataFrame:
    """Return canonical logs."""
    cells = _place(frame, "transaction_hash") | {
        "log_index": number(frame, "log_index", pa.int64()),
        "address": hex_text("address", ADDRESS_LENGTH),
        "topics": hashes("topics"),
        "data": hex_text("data"),
    }
    removed = f"lower(cast({quoted('removed')} as string))"
    removal = fault(FaultCode.REMOVED_LOG, "removed: false", removed)
    is_removed = f"case when {removed} != 'false' then {removal} end"
    return canonical_rows(frame, "logs", cells, quoted(FILE), _corrupt(), is_removed)


def number(frame: DataFrame, name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert digits, an integer or a decimal to int64, UINT64 or WEI; no column is no value."""
    if name not in frame.columns:
        return unknown(type_)
    convert = number_text if dict(frame.dtypes)[name] == "string" else whole_number
    return convert(name, type_, required)


def seconds(frame: DataFrame, name: str) -> Cell:
    """Convert digits, ``YYYY-MM-DD HH:MM:SS UTC`` or a timestamp to whole seconds."""
    type_, source = dict(frame.dtypes)[name], quoted(name)
    is_text = type_ == "string"
    if not is_text and not type_.startswith("timestamp"):
        return number(frame, name, pa.int64())
    # A text without a time zone would be read in the machine's.
    pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.0+)?( UTC|Z|\+00:00)$"
    in_utc = f"try_cast(concat(substring({source}, 1, 19), 'Z') as timestamp)"
    moment = f"case when {source} rlike {literal(pattern)} then {in_utc} end" if is_text else source
    is_whole = f"coalesce(unix_micros({moment}) % 1000000 = 0, false)"
    expected = f"{name}: whole seconds from 1970 on, UTC"
    problem = (
        f"case when {source} is null then {missing(f'{name}: a value')}"
        f" when not {is_whole} then {fault(FaultCode.WRONG_ENCODING, expected, source)}"
        f" when unix_seconds({moment}) < 0 then {fault(FaultCode.OUT_OF_RANGE, expected, source)}"
        " end"
    )
    time = Cell(f"case when {problem} is null then unix_seconds({moment}) end", problem)
    if not is_text:
        return time
    digits, is_digits = number(frame, name, pa.int64()), f"{source} rlike '^-?[0-9]+$'"
    return Cell(
        f"case when {is_digits} then {digits.value} else {time.value} end",
        f"case when {is_digits} then {digits.fault} else {time.fault} end",
    )


def hashes(name: str, required: bool = True) -> Cell:
    """Convert a list of hashes as text."""
    each, expected = quoted(name), f"{name}: each 32 bytes as 0x and lower-case hex digits"
    pattern = literal("^0x([0-9a-f]{2})*$")
    wrong_hex = f"filter({each}, text -> not coalesce(text rlike {pattern}, false))"
    wrong_length = f"filter({each}, text -> length(text) != {2 + 2 * HASH_LENGTH})"
    of_null = missing(f"{name}: a list") if required else NO_FAULT
    cases = "".join(
        f" when size({wrong}) > 0 then {fault(code, expected, f'get({wrong}, 0)')}"
        for code, wrong in (
            (FaultCode.WRONG_ENCODING, wrong_hex),
            (FaultCode.WRONG_LENGTH, wrong_length),
        )
    )
    problem = f"case when {each} is null then {of_null}{cases} end"
    value = f"transform({each}, text -> try_to_binary(substring(text, 3), 'hex'))"
    # Fine rows have no null here: this declares it to Spark.
    return Cell(f"case when {problem} is null then array_compact({value}) end", problem)


def _place(frame: DataFrame, transaction_hash: str) -> dict[str, Cell]:
    return {
        "block_number": number(frame, "block_number", pa.int64()),
        "block_hash": hex_text("block_hash", HASH_LENGTH),
        "transaction_hash": hex_text(transaction_hash, HASH_LENGTH),
        "transaction_index": number(frame, "transaction_index", pa.int64()),
    }


def _type(frame: DataFrame) -> Cell:
    """Return the type; endpoints that know no types leave it out: a legacy transaction."""
    cell = number(frame, "transaction_type", pa.int64(), required=False)
    is_legacy = f"{quoted('transaction_type')} is null"
    return Cell(f"case when {is_legacy} then 0 else {cell.value} end", cell.fault)


def _has_type(*types: int) -> str:
    """Return whether a transaction is of one of the types, or of one that is not known here."""
    # A value that is no number is a fault of the type's own cell.
    type_ = f"coalesce(try_cast({quoted('transaction_type')} as long), 0)"
    return f"({type_} in ({_listed(types)}) or {type_} not in ({_listed(_KNOWN_TYPES)}))"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _fee(frame: DataFrame, name: str, *types: int) -> Cell:
    return where(_has_type(*types), number(frame, name, tables.WEI, required=False))


def _corrupt() -> str:
    line = quoted(CORRUPT)
    problem = fault(FaultCode.WRONG_ENCODING, "a whole row in each line", line)
    return f"case when {line} is not null then {problem} end"
