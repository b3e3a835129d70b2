"""From the columns of the ethereum-etl family to canonical rows.

Its three formats name their columns alike. They write cells differently: a number is
text, an integer or a decimal, a time is seconds, text or a timestamp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from chainkit.exports import tables
from chainkit.types import ADDRESS_LENGTH, HASH_LENGTH
from chainkit_jobs.adapters.cells import (
    Cell,
    canonical_rows,
    fault,
    hex_text,
    number_text,
    unknown,
    whole_number,
)
from chainkit_jobs.adapters.etl_layout import CORRUPT, FILE
from chainkit_jobs.adapters.faults import FaultCode

_BLOOM_LENGTH: Final = 256
_NONCE_LENGTH: Final = 8

_PRICED_TYPES: Final = (0, 1)
_ARBITRUM_TYPES: Final = (0x64, 0x65, 0x66, 0x68, 0x69, 0x6A)
_FEE_TYPES: Final = (2, 3, 4)
_BLOB_TYPES: Final = (3,)
_KNOWN_TYPES: Final = (*_PRICED_TYPES, *_FEE_TYPES, 0x7E, *_ARBITRUM_TYPES)


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
    return canonical_rows(frame, "blocks", cells, sf.col(FILE), _corrupt())


def transaction_rows(frame: DataFrame, *receipt_faults: Column) -> DataFrame:
    """Return canonical transactions; a fault of the row's receipt is one of the row."""
    cells = _place(frame, "hash") | {
        "type": _type(frame),
        "nonce": number(frame, "nonce", tables.UINT64),
        "from_address": hex_text("from_address", ADDRESS_LENGTH),
        "to_address": hex_text("to_address", ADDRESS_LENGTH, required=False),
        "value": number(frame, "value", tables.WEI),
        "input": hex_text("input"),
        "gas_limit": number(frame, "gas", pa.int64()),
        # For a type with fees of its own, it is the price paid; and a fee that a type has not may
        # be filled in with a zero.
        "gas_price": _fee(frame, "gas_price", *_PRICED_TYPES),
        "max_fee_per_gas": _fee(frame, "max_fee_per_gas", *_FEE_TYPES, *_ARBITRUM_TYPES),
        "max_priority_fee_per_gas": _fee(frame, "max_priority_fee_per_gas", *_FEE_TYPES),
        "max_fee_per_blob_gas": _fee(frame, "max_fee_per_blob_gas", *_BLOB_TYPES),
        "blob_versioned_hashes": _where(
            _has_type(*_BLOB_TYPES), hashes("blob_versioned_hashes", required=False)
        ),
    }
    return canonical_rows(frame, "transactions", cells, sf.col(FILE), _corrupt(), *receipt_faults)


def receipt_cells(frame: DataFrame, transaction_hash: str, prefix: str) -> dict[str, Cell]:
    """Return the cells of a receipt in rows that also tell its transaction.

    ``transaction_hash`` is the name of that column, ``prefix`` stands before RECEIPT_PARTS.
    """
    price, paid = _fee(frame, "gas_price", *_PRICED_TYPES), f"{prefix}effective_gas_price"
    is_offer = sf.col(paid).isNull() & price.value.isNotNull()
    told = number(frame, paid, tables.WEI)
    cells = {
        "type": _type(frame),
        "status": number(frame, f"{prefix}status", pa.int64()),
        "from_address": hex_text("from_address", ADDRESS_LENGTH),
        "to_address": hex_text("to_address", ADDRESS_LENGTH, required=False),
        "contract_address": hex_text(f"{prefix}contract_address", ADDRESS_LENGTH, required=False),
        "gas_used": number(frame, f"{prefix}gas_used", pa.int64()),
        "cumulative_gas_used": number(frame, f"{prefix}cumulative_gas_used", pa.int64()),
        # Before London nodes did not tell it: who offers a price pays it.
        "effective_gas_price": Cell(
            sf.when(is_offer, price.value).otherwise(told.value),
            sf.when(~is_offer, told.fault),
        ),
    }
    for name in ("l1_fee", "l1_gas_used", "l1_gas_price"):
        cells[name] = number(frame, f"{prefix}{name}", tables.WEI, required=False)
    return _place(frame, transaction_hash) | cells


def receipt_rows(frame: DataFrame, cells: Mapping[str, Cell], *row_faults: Column) -> DataFrame:
    """Return canonical receipts."""
    return canonical_rows(frame, "receipts", cells, sf.col(FILE), _corrupt(), *row_faults)


def rows_with_receipts(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return canonical transactions and receipts of rows with the columns WITH_RECEIPTS.

    A fault of a receipt is told of its transaction.
    """
    cells = receipt_cells(frame, "hash", "receipt_")
    faults = [cell.fault for cell in cells.values()]
    return transaction_rows(frame, *faults), receipt_rows(frame, cells)


def log_rows(frame: DataFrame) -> DataFrame:
    """Return canonical logs."""
    cells = _place(frame, "transaction_hash") | {
        "log_index": number(frame, "log_index", pa.int64()),
        "address": hex_text("address", ADDRESS_LENGTH),
        "topics": hashes("topics"),
        "data": hex_text("data"),
    }
    removed = sf.lower(sf.col("removed").cast("string"))
    is_removed = removed.isNotNull() & (removed != "false")
    removal = fault(FaultCode.REMOVED_LOG, "removed: false", removed)
    return canonical_rows(
        frame, "logs", cells, sf.col(FILE), _corrupt(), sf.when(is_removed, removal)
    )


def number(frame: DataFrame, name: str, type_: pa.DataType, required: bool = True) -> Cell:
    """Convert digits, an integer or a decimal to int64, UINT64 or WEI; no column is no value."""
    if name not in frame.columns:
        return unknown(type_)
    convert = number_text if dict(frame.dtypes)[name] == "string" else whole_number
    return convert(name, type_, required)


def seconds(frame: DataFrame, name: str) -> Cell:
    """Convert digits, ``YYYY-MM-DD HH:MM:SS UTC`` or a timestamp to whole seconds."""
    type_, source = dict(frame.dtypes)[name], sf.col(name)
    is_text = type_ == "string"
    if not is_text and not type_.startswith("timestamp"):
        return number(frame, name, pa.int64())
    # A text that says no time zone would be read in anyone's.
    pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.0+)?( UTC|Z|\+00:00)$"
    in_utc = sf.concat(sf.substring(source, 1, 19), sf.lit("Z")).try_cast("timestamp")
    moment = sf.when(source.rlike(pattern), in_utc) if is_text else source
    is_whole = sf.coalesce(sf.unix_micros(moment) % 1_000_000 == 0, sf.lit(False))
    expected = f"{name}: whole seconds from 1970 on, UTC"
    missing = fault(FaultCode.MISSING_VALUE, f"{name}: a value", sf.lit("nothing"))
    problem = (
        sf.when(source.isNull(), missing)
        .when(~is_whole, fault(FaultCode.WRONG_ENCODING, expected, source))
        .when(sf.unix_seconds(moment) < 0, fault(FaultCode.OUT_OF_RANGE, expected, source))
    )
    time = Cell(sf.when(problem.isNull(), sf.unix_seconds(moment)), problem)
    if not is_text:
        return time
    digits, is_digits = number(frame, name, pa.int64()), source.rlike("^-?[0-9]+$")
    return Cell(
        sf.when(is_digits, digits.value).otherwise(time.value),
        sf.when(is_digits, digits.fault).otherwise(time.fault),
    )


def hashes(name: str, required: bool = True) -> Cell:
    """Convert a list of hashes as text."""
    each, expected = sf.col(name), f"{name}: each 32 bytes as 0x and lower-case hex digits"
    is_hex = partial(sf.rlike, regexp=sf.lit("^0x([0-9a-f]{2})*$"))
    wrong_hex = sf.filter(each, lambda text: ~sf.coalesce(is_hex(text), sf.lit(False)))
    wrong_length = sf.filter(each, lambda text: sf.length(text) != 2 + 2 * HASH_LENGTH)
    problem = sf.when(
        sf.size(wrong_hex) > 0,
        fault(FaultCode.WRONG_ENCODING, expected, sf.get(wrong_hex, sf.lit(0))),
    ).when(
        sf.size(wrong_length) > 0,
        fault(FaultCode.WRONG_LENGTH, expected, sf.get(wrong_length, sf.lit(0))),
    )
    if required:
        missing = fault(FaultCode.MISSING_VALUE, f"{name}: a list", sf.lit("nothing"))
        problem = sf.when(each.isNull(), missing).otherwise(problem)
    value = sf.transform(
        each, lambda text: sf.try_to_binary(sf.substring(text, 3, 2**31 - 1), sf.lit("hex"))
    )
    # There is no null among fine ones: this tells Spark.
    return Cell(sf.when(problem.isNull(), sf.array_compact(value)), problem)


def _place(frame: DataFrame, transaction_hash: str) -> dict[str, Cell]:
    return {
        "block_number": number(frame, "block_number", pa.int64()),
        "block_hash": hex_text("block_hash", HASH_LENGTH),
        "transaction_hash": hex_text(transaction_hash, HASH_LENGTH),
        "transaction_index": number(frame, "transaction_index", pa.int64()),
    }


def _type(frame: DataFrame) -> Cell:
    """Endpoints that know no types say none: then it is a legacy transaction."""
    cell = number(frame, "transaction_type", pa.int64(), required=False)
    is_legacy = sf.col("transaction_type").isNull()
    return Cell(sf.when(is_legacy, sf.lit(0)).otherwise(cell.value), cell.fault)


def _has_type(*types: int) -> Column:
    """Return whether a transaction is of one of the types, or of one that is not known here."""
    # A value that is no number is a fault of the type's own cell.
    type_ = sf.coalesce(sf.col("transaction_type").try_cast("long"), sf.lit(0))
    return type_.isin(*types) | ~type_.isin(*_KNOWN_TYPES)


def _fee(frame: DataFrame, name: str, *types: int) -> Cell:
    return _where(_has_type(*types), number(frame, name, tables.WEI, required=False))


def _where(condition: Column, cell: Cell) -> Cell:
    return Cell(sf.when(condition, cell.value), sf.when(condition, cell.fault))


def _corrupt() -> Column:
    expected, line = "a whole row in each line", sf.col(CORRUPT)
    return sf.when(line.isNotNull(), fault(FaultCode.WRONG_ENCODING, expected, line))
