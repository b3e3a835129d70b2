"""cryo's Parquet files (version 0.3): ``<network>__<dataset>__<from>_to_<to>.parquet``.

Both ends of a file's range are included, although cryo's own option ``--blocks FROM:TO`` leaves
``TO`` out. Bytes may be raw or, after ``--hex``, text. cryo has no receipts: they are built from
the transactions, whose rows hold gas used and success; the sum of the gas is computed here, and the
address of a created contract follows from sender and nonce. None of these values is trusted: a
block's receipts root proves them. Columns that cryo never writes are null: of headers the gas
limit, uncles, difficulty, mix hash, nonce, and all that came with Shanghai and later; of
transactions signatures, access lists, blobs and authorizations, and whether a legacy transaction
names its chain. Such headers and transactions cannot be proved by their own hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from chainkit.ethereum import create_address
from chainkit.exports import tables
from chainkit_jobs.adapters.adapter import SourceFile, SourceTables
from chainkit_jobs.adapters.cells import (
    NO_FAULT,
    Cell,
    canonical_rows,
    hex_text,
    number_text,
    raw_bytes,
    relative_path,
    where,
    whole_number,
)
from chainkit_jobs.adapters.cryo_files import COLUMNS, common_types, list_files, spark_schema
from chainkit_jobs.spark_paths import spark_paths


@dataclass(frozen=True, slots=True)
class Cryo:
    """The adapter."""

    @property
    def name(self) -> str:
        """Return ``cryo``."""
        return "cryo"

    def files(self, directory: Path) -> Sequence[SourceFile]:
        """List the Parquet files of the three datasets; cryo's other datasets are passed over.

        Raises StoreError where a dataset has no file, or a file's name is none of cryo's.
        """
        return list_files(directory)

    def check(self, directory: Path) -> None:
        """Read the footers. Raises StoreError as ``read``."""
        self._datasets(directory)

    def _datasets(self, directory: Path) -> dict[str, tuple[list[Path], dict[str, pa.DataType]]]:
        """Return the files of each dataset with their columns' types; errors as ``read``."""
        files = self.files(directory)
        found = {}
        for dataset in COLUMNS:
            paths = [directory / file.name for file in files if file.table == dataset]
            found[dataset] = paths, common_types(paths, dataset)
        return found

    def read(self, spark: SparkSession, directory: Path) -> SourceTables:
        """Return the rows. Raises StoreError where a file lacks a column or has another type."""
        frames: dict[str, DataFrame] = {}
        is_hex: dict[str, bool] = {}
        for dataset, (paths, types) in self._datasets(directory).items():
            is_hex[dataset] = types["block_hash"] == pa.string()
            frame = spark.read.schema(spark_schema(types)).parquet(*spark_paths(spark, paths))
            # Hidden columns do not outlive a select.
            frames[dataset] = frame.select("*", relative_path(directory).alias("file"))
        transactions = frames["transactions"]
        return SourceTables(
            blocks=_blocks(frames["blocks"], is_hex["blocks"]),
            transactions=_transactions(transactions, is_hex["transactions"]),
            receipts=_receipts(transactions, is_hex["transactions"]),
            logs=_logs(frames["logs"], is_hex["logs"]),
            receipts_are_derived=True,
        )


def _bytes(is_hex: bool, name: str, length: int | None = None, required: bool = True) -> Cell:
    return (hex_text if is_hex else raw_bytes)(name, length, required)


def _blocks(frame: DataFrame, is_hex: bool) -> DataFrame:
    as_bytes = partial(_bytes, is_hex)
    cells = {
        "number": whole_number("block_number", pa.int64()),
        "hash": as_bytes("block_hash", 32),
        "parent_hash": as_bytes("parent_hash", 32),
        "miner": as_bytes("author", 20),
        "state_root": as_bytes("state_root", 32),
        "transactions_root": as_bytes("transactions_root", 32),
        "receipts_root": as_bytes("receipts_root", 32),
        "logs_bloom": as_bytes("logs_bloom", 256),
        "gas_used": whole_number("gas_used", pa.int64()),
        "timestamp": whole_number("timestamp", pa.int64()),
        "extra_data": as_bytes("extra_data"),
        "base_fee_per_gas": whole_number("base_fee_per_gas", tables.WEI, required=False),
    }
    return canonical_rows(frame, "blocks", cells, "file", row_chain_id="chain_id")


def _transactions(frame: DataFrame, is_hex: bool) -> DataFrame:
    as_bytes = partial(_bytes, is_hex)
    wei = partial(whole_number, type_=tables.WEI)
    is_typed, has_own_fees = "transaction_type > 0", "coalesce(transaction_type > 1, false)"
    price = wei("gas_price")
    cells = {
        "block_number": whole_number("block_number", pa.int64()),
        "block_hash": as_bytes("block_hash", 32),
        "transaction_hash": as_bytes("transaction_hash", 32),
        "transaction_index": whole_number("transaction_index", pa.int64()),
        "type": _type(),
        # An old transaction may be valid on any chain: only later types always name theirs.
        "chain_id": where(is_typed, wei("chain_id")),
        "nonce": whole_number("nonce", tables.UINT64),
        "from_address": as_bytes("from_address", 20),
        "to_address": as_bytes("to_address", 20, required=False),
        "value": number_text("value_string", tables.WEI),
        "input": as_bytes("input"),
        "gas_limit": whole_number("gas_limit", pa.int64()),
        # For a type with fees of its own, cryo's price is the paid price.
        "gas_price": where(f"not {has_own_fees}", price),
        "max_fee_per_gas": wei("max_fee_per_gas", required=False),
        "max_priority_fee_per_gas": wei("max_priority_fee_per_gas", required=False),
    }
    return canonical_rows(frame, "transactions", cells, "file", row_chain_id="chain_id")


def _receipts(frame: DataFrame, is_hex: bool) -> DataFrame:
    as_bytes = partial(_bytes, is_hex)
    sender, recipient = as_bytes("from_address", 20), as_bytes("to_address", 20, required=False)
    nonce = whole_number("nonce", tables.UINT64)
    created = _created_address(sender.value, nonce.value)
    cells = {
        "block_number": whole_number("block_number", pa.int64()),
        "block_hash": as_bytes("block_hash", 32),
        "transaction_hash": as_bytes("transaction_hash", 32),
        "transaction_index": whole_number("transaction_index", pa.int64()),
        "type": _type(),
        "status": Cell("cast(success as long)", NO_FAULT),
        "from_address": sender,
        "to_address": recipient,
        "contract_address": Cell("created", NO_FAULT),
        "gas_used": whole_number("gas_used", pa.int64()),
        "effective_gas_price": whole_number("gas_price", tables.WEI),
    }
    with_created = frame.withColumn("created", created)
    return canonical_rows(with_created, "receipts", cells, "file", row_chain_id="chain_id")


def _logs(frame: DataFrame, is_hex: bool) -> DataFrame:
    as_bytes = partial(_bytes, is_hex)
    topics = [as_bytes(f"topic{index}", 32, required=False) for index in range(4)]
    present = f"array_compact(array({', '.join(topic.value for topic in topics)}))"
    fault = f"coalesce({', '.join(topic.fault for topic in topics)})"
    cells = {
        "block_number": whole_number("block_number", pa.int64()),
        "block_hash": as_bytes("block_hash", 32),
        "transaction_hash": as_bytes("transaction_hash", 32),
        "transaction_index": whole_number("transaction_index", pa.int64()),
        "log_index": whole_number("log_index", pa.int64()),
        "address": as_bytes("address", 20),
        "topics": Cell(present, fault),
        "data": as_bytes("data"),
    }
    return canonical_rows(frame, "logs", cells, "file", row_chain_id="chain_id")


def _type() -> Cell:
    """Return the type; endpoints that know no types leave it out: a legacy transaction."""
    cell = whole_number("transaction_type", pa.int64(), required=False)
    value = f"case when transaction_type is null then 0 else {cell.value} end"
    return Cell(value, cell.fault)


def _created_address(sender: str, nonce: str) -> Column:
    """Return the address of the contract that a transaction creates, null for any other."""
    create = sf.udf(_create_address, BinaryType(), useArrow=False)
    # Spark computes rows that a condition leaves out all the same, unless they have no sender.
    of_creation = f"case when to_address is null then {sender} end"
    return create(sf.expr(of_creation), sf.expr(nonce))


def _create_address(sender: bytearray | None, nonce: Decimal | None) -> bytes | None:
    if sender is None or nonce is None:
        return None
    return create_address(bytes(sender), int(nonce))
