"""Names and columns of cryo's Parquet files (version 0.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    LongType,
    StringType,
    StructType,
)

from chainkit.errors import StoreError
from chainkit_jobs.adapters.adapter import SourceFile
from chainkit_jobs.adapters.footers import column_types

COMMAND: Final = "cryo blocks transactions logs --columns all --blocks FROM:TO"
"""The command that writes all columns that an import needs."""

_NAME: Final = re.compile(
    r"(?P<network>.+?)__(?P<dataset>[a-z_]+?)__(?:.+__)?(?P<first>[0-9]+)_to_(?P<last>[0-9]+)\.parquet"
)
_NETWORK: Final = re.compile(r"network_([0-9]+)")

_BYTES: Final = (pa.binary(), pa.string())
_TEXT: Final = (pa.string(),)
_UINT32: Final = (pa.uint32(),)
_UINT64: Final = (pa.uint64(),)
_INDEX: Final = (pa.uint32(), pa.uint64())
_BOOL: Final = (pa.bool_(),)

COLUMNS: Final[Mapping[str, Mapping[str, tuple[pa.DataType, ...]]]] = {
    "blocks": {
        "block_hash": _BYTES,
        "parent_hash": _BYTES,
        "author": _BYTES,
        "state_root": _BYTES,
        "transactions_root": _BYTES,
        "receipts_root": _BYTES,
        "block_number": _UINT32,
        "gas_used": _UINT64,
        "extra_data": _BYTES,
        "logs_bloom": _BYTES,
        "timestamp": _UINT32,
        "base_fee_per_gas": _UINT64,
        "chain_id": _UINT64,
    },
    "transactions": {
        "block_number": _UINT32,
        "transaction_index": _INDEX,
        "transaction_hash": _BYTES,
        "nonce": _UINT64,
        "from_address": _BYTES,
        "to_address": _BYTES,
        "value_string": _TEXT,
        "input": _BYTES,
        "gas_limit": _UINT64,
        "gas_used": _UINT64,
        "gas_price": _UINT64,
        "transaction_type": _UINT32,
        "max_priority_fee_per_gas": _UINT64,
        "max_fee_per_gas": _UINT64,
        "success": _BOOL,
        "block_hash": _BYTES,
        "chain_id": _UINT64,
    },
    "logs": {
        "block_number": _UINT32,
        "block_hash": _BYTES,
        "transaction_index": _INDEX,
        "log_index": _INDEX,
        "transaction_hash": _BYTES,
        "address": _BYTES,
        "topic0": _BYTES,
        "topic1": _BYTES,
        "topic2": _BYTES,
        "topic3": _BYTES,
        "data": _BYTES,
        "chain_id": _UINT64,
    },
}
"""The columns that are read, by dataset, with cryo's types, as plain_type."""

_SPARK_TYPES: Final[Mapping[pa.DataType, DataType]] = {
    pa.binary(): BinaryType(),
    pa.string(): StringType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.bool_(): BooleanType(),
}


def list_files(directory: Path) -> list[SourceFile]:
    """List the files of the three datasets. Raises StoreError as ``Cryo.files``."""
    found: list[SourceFile] = []
    for path in sorted(directory.rglob("*.parquet")):
        name = path.relative_to(directory).as_posix()
        match = _NAME.fullmatch(path.name)
        if match is None:
            expected = "NETWORK__DATASET__FROM_to_TO.parquet, as cryo names its files"
            raise StoreError(f"source {directory}", expected, name)
        if match["dataset"] in COLUMNS:
            first, last = int(match["first"]), int(match["last"])
            chain_id = _chain_id(match["network"])
            found.append(SourceFile(name, match["dataset"], first, last, chain_id=chain_id))
    for dataset in COLUMNS:
        if all(file.table != dataset for file in found):
            expected = f"Parquet files of cryo's {dataset} (`{COMMAND}`)"
            raise StoreError(f"source {directory}", expected, "none")
    return found


def spark_schema(types: Mapping[str, pa.DataType]) -> StructType:
    """Return the schema with which Spark reads columns of these types."""
    schema = StructType()
    for column, type_ in types.items():
        schema.add(column, _SPARK_TYPES[type_])
    return schema


def _chain_id(network: str) -> int | None:
    """Return the chain id of a network's name: Ethereum's, or the number behind ``network_``."""
    if network == "ethereum":
        return 1
    match = _NETWORK.fullmatch(network)
    return int(match[1]) if match else None


def common_types(paths: Sequence[Path], dataset: str) -> dict[str, pa.DataType]:
    """Return the types of the columns that are read, the same in all files of a dataset.

    Raises StoreError that names the first file where a column is missing or of another type.
    """
    first: dict[str, pa.DataType] | None = None
    for path in paths:
        types = _types(path, dataset)
        first = first or types
        for column, type_ in types.items():
            if type_ != first[column]:
                subject, place = f"cryo file {path}", f"{paths[0].name} has it so"
                raise StoreError(subject, f"{column} of type {first[column]}", type_, place)
    return first or {}


def _types(path: Path, dataset: str) -> dict[str, pa.DataType]:
    subject, wanted = f"cryo file {path}", COLUMNS[dataset]
    types = dict(column_types(path, subject, wanted))
    if missing := [column for column in wanted if column not in types]:
        expected = f"the columns of `{COMMAND}`"
        raise StoreError(subject, expected, f"none of the name {', '.join(missing)}")
    for column, type_ in types.items():
        if type_ not in wanted[column]:
            expected = f"{column} of type {' or '.join(map(str, wanted[column]))}"
            raise StoreError(subject, expected, type_, f"take it from `{COMMAND}`")
    texts = {column for column in wanted if wanted[column] == _BYTES}
    if len({types[column] for column in texts}) > 1:
        raise StoreError(subject, "all bytes raw, or all of them text (--hex)", "both")
    return types
